"""How many agents may live, and for how long when nothing happens."""

import asyncio

import pytest

from bullpen.domain.commands import AddWorker
from bullpen.domain.conversation import TurnEnd
from bullpen.domain.errors import TooMany
from bullpen.domain.states import SessionStatus, WorkerState
from bullpen.store.unseen import read_unseen
from support.server_without_web import ServerWithoutWeb, primary_agent, run_turn, send_prompt, until


def in_a_turn(number: int) -> str:
    return f"{number} [[wait_cancel]]"


async def test_the_session_after_the_last_allowed_one_is_refused_until_a_slot_is_free(
    small_house: ServerWithoutWeb,
) -> None:
    async with small_house.open() as house:
        busy = [await house.session("scripted") for _ in range(2)]
        for number, session in enumerate(busy):
            await send_prompt(session, in_a_turn(number))
        with pytest.raises(TooMany, match="2 sessions have a running agent") as refused:
            await house.session("scripted")
        assert refused.value.retry_after == 60
        empty = await house.session()  # one without an agent is free
        order = AddWorker(worker_id="w", type="agent", agent_id="scripted", workspace=str(house.workspace))
        with pytest.raises(TooMany):
            await empty.add_worker(order)
        with pytest.raises(TooMany):
            await send_prompt(empty, "hello")
        await busy[0].end(SessionStatus.CANCELLED, "cancelled")
        await empty.add_worker(order)
        await until(empty, lambda s: s.worker("w").state is WorkerState.ACTIVE)


async def test_many_at_once_do_not_get_past_the_limit(small_house: ServerWithoutWeb) -> None:
    async with small_house.open() as house:
        made = await asyncio.gather(*(house.session("scripted") for _ in range(6)), return_exceptions=True)
        assert sum(isinstance(each, TooMany) for each in made) == 4


async def test_living_agents_count_after_a_restart_too(small_house: ServerWithoutWeb) -> None:
    async with small_house.open() as house:
        for number in range(2):
            session = await house.session("scripted")
            await send_prompt(session, in_a_turn(number))
    async with small_house.open() as house:
        with pytest.raises(TooMany):
            await house.session("scripted")


async def test_an_idle_session_ends_and_says_why(small_house: ServerWithoutWeb) -> None:
    async with small_house.open() as house:
        session = await house.session("scripted")
        snapshot = await until(session, lambda s: s.status is not SessionStatus.ACTIVE)
        assert (snapshot.status, snapshot.end_reason) == (SessionStatus.COMPLETED, "idle_timeout")
        assert snapshot.metadata == {"reason": "idle_timeout"}
        assert [worker.state for worker in snapshot.workers.values()] == [WorkerState.TERMINATED]


async def test_what_nobody_has_seen_still_waits_when_its_session_ends_idle(
    small_house: ServerWithoutWeb,
) -> None:
    """An agent that is done at night is told of in the morning."""
    async with small_house.open() as house:
        idle, ended = [await house.session("scripted") for _ in range(2)]
        for session in (idle, ended):
            await run_turn(session, "[[chunk done]]")
        await ended.end(SessionStatus.COMPLETED, "user_request")
        await until(idle, lambda s: s.end_reason == "idle_timeout")
        (waiting,) = await house.sessions.services.store.database.read(read_unseen)
        assert (waiting.session_id, waiting.kind) == (idle.id, "finished")


async def test_an_agent_nobody_talked_to_since_a_restart_is_idle_too(small_house: ServerWithoutWeb) -> None:
    async with small_house.open() as house:
        session = await house.session("scripted")
        await until(session, lambda s: primary_agent(s).state is WorkerState.ACTIVE)
    async with small_house.open() as house:
        session = await house.sessions.get(session.id)
        await until(session, lambda s: s.end_reason == "idle_timeout")


async def test_a_turn_a_question_or_a_message_keeps_a_session(small_house: ServerWithoutWeb) -> None:
    async with small_house.open() as house:
        session = await house.session("scripted")
        await send_prompt(session, "[[sleep 1.2]] [[permission title=x]] [[sleep 0.1]]")
        snapshot = await until(session, lambda s: s.permissions)
        assert snapshot.status is SessionStatus.ACTIVE  # the turn alone took longer than an idle one has
        await session.pause_queue()
        await session.enqueue("later")
        await session.answer_permission(snapshot.permissions[0].permission.id, "yes", "ada")
        await until(session, lambda s: s.conversations[primary_agent(s).id].turn is None)
        await session.clear_queue()
        await until(session, lambda s: s.status is SessionStatus.COMPLETED)
        ended = [event for event in await house.events(session) if isinstance(event.fact, TurnEnd)]
        assert [event.fact.stop_reason for event in ended if isinstance(event.fact, TurnEnd)] == ["end_turn"]
