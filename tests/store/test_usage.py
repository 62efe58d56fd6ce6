"""Usage of turns, added up by session, agent, repository and day, on SQLite and PostgreSQL."""

from typing import Any

from bullpen.domain.conversation import TurnEnd, TurnStart, Usage
from bullpen.domain.events import Draft, Fact, WorkerSpawning
from bullpen.domain.snapshot import Snapshot
from bullpen.domain.usage import Money
from bullpen.store.append import Append
from bullpen.store.events import EventStore
from bullpen.store.usage import DAY_MS, UsageFilters, UsageTotals, read_usage
from support.sample_events import SESSION_START, append_to

START_MS = 1_700_000_000_000  # time of the first events


def start_session(session_id: str, *facts: Fact) -> Append:
    worker = f"w-{session_id}"
    spawning = WorkerSpawning(worker_type="agent", name="Demo", run=1, workspace="/srv/x", agent_id="demo")
    drafts = [
        Draft(SESSION_START),
        Draft(spawning, worker, "demo"),
        *(Draft(fact, worker, "demo") for fact in facts),
    ]
    return append_to(Snapshot(id=session_id), *drafts)


def continue_session(append: Append, *facts: Fact) -> Append:
    worker = f"w-{append.snapshot.id}"
    return append_to(append.snapshot, *(Draft(fact, worker, "demo") for fact in facts))


def turn(id: str, tokens: int, cost: Any = None) -> list[Fact]:
    used = {"inputTokens": tokens - 1, "outputTokens": 1}
    facts: list[Fact] = [TurnStart(prompt_id=id), Usage(used=5, size=10, cost=cost)]
    return [*facts, Usage(turn=used), TurnEnd(stop_reason="end_turn")]


async def usage_by(
    store: EventStore, by: str, limit: int = 100, offset: int = 0, **filters: Any
) -> tuple[list[UsageTotals], UsageTotals]:
    return await store.database.read(lambda c: read_usage(c, by, UsageFilters(**filters), limit, offset))


async def test_turns_add_up_to_sessions_agents_and_days(store: EventStore) -> None:
    first = start_session("a", *turn("p1", 100, {"amount": 0.25, "currency": "USD"}))
    await store.commit(first)
    await store.commit(continue_session(first, *turn("p2", 50, {"amount": 0.75, "currency": "USD"})))
    await store.commit(start_session("b", *turn("p3", 7)))
    turns, total = await usage_by(store, "turn", session_id="a")
    assert [(each.key, each.tokens.total, each.costs) for each in turns] == [
        ("p2", 50, (Money(0.5, "USD"),)),
        ("p1", 100, (Money(0.25, "USD"),)),
    ]
    assert (total.turns, total.tokens.total, total.costs) == (2, 150, (Money(0.75, "USD"),))
    assert turns[1].seq == 4
    sessions, total = await usage_by(store, "session")
    assert [(each.key, each.turns, each.tokens.total) for each in sessions] == [("a", 2, 150), ("b", 1, 7)]
    assert (total.turns, total.tokens.input, total.tokens.output) == (3, 154, 3)
    (agent,), _ = await usage_by(store, "agent")
    assert (agent.key, agent.turns) == ("demo", 3)
    (repository,), _ = await usage_by(store, "repository")
    assert (repository.key, repository.turns) == (None, 3)
    (day,), _ = await usage_by(store, "day")
    assert (day.key, day.tokens.total) == ("2023-11-14", 157)
    (day,), _ = await usage_by(store, "day", offset=DAY_MS)
    assert day.key == "2023-11-15"


async def test_filters_apply_to_the_total_and_a_limit_does_not(store: EventStore) -> None:
    await store.commit(start_session("a", *turn("p1", 100), *turn("p2", 10)))
    turns, total = await usage_by(store, "turn", limit=1)
    assert ([each.key for each in turns], total.turns) == (["p2"], 2)
    assert (await usage_by(store, "turn", agent_id="other")) == ([], UsageTotals())
    assert (await usage_by(store, "turn", before=START_MS)) == ([], UsageTotals())
    assert (await usage_by(store, "turn", after=START_MS + 10))[1].turns == 1


async def test_two_currencies_are_not_added(store: EventStore) -> None:
    costs = ({"amount": 1, "currency": "USD"}, {"amount": 2, "currency": "EUR"})
    await store.commit(start_session("a", *turn("p1", 5, costs[0]), *turn("p2", 6, costs[1])))
    (session,), _ = await usage_by(store, "session")
    assert session.costs == (Money(2, "EUR"), Money(1, "USD"))
    assert (session.turns, session.tokens.total) == (2, 11)


async def test_a_purge_removes_the_usage_of_a_session(store: EventStore) -> None:
    await store.commit(start_session("a", *turn("p1", 5)))
    await store.purge("a")
    assert await usage_by(store, "day") == ([], UsageTotals())
