"""The limit of sessions with a living agent, and the idle timeout of sessions."""

import asyncio

import pytest

from bullpen.domain.commands import AddWorker
from bullpen.domain.conversation import TurnEnd
from bullpen.domain.errors import TooMany
from bullpen.domain.states import SessionStatus, WorkerState
from bullpen.store.unseen_results import read_unseen
from support.server_without_web import ServerWithoutWeb, primary_agent, run_turn, send_prompt, until


def prompt_of_an_endless_turn(number: int) -> str:
    return f"{number} [[wait_cancel]]"


async def test_a_session_beyond_the_limit_is_refused_until_a_slot_is_free(
    small_server: ServerWithoutWeb,
) -> None:
    async with small_server.open() as local_server:
        busy = [await local_server.session("scripted") for _ in range(2)]
        for number, session in enumerate(busy):
            await send_prompt(session, prompt_of_an_endless_turn(number))
        with pytest.raises(TooMany, match="2 sessions have a running agent") as refused:
            await local_server.session("scripted")
        assert refused.value.retry_after == 60
        empty = await local_server.session()  # a session without an agent needs no slot
        order = AddWorker(
            worker_id="w", type="agent", agent_id="scripted", workspace=str(local_server.workspace)
        )
        with pytest.raises(TooMany):
            await empty.add_worker(order)
        with pytest.raises(TooMany):
            await send_prompt(empty, "hello")
        await busy[0].end(SessionStatus.CANCELLED, "cancelled")
        await empty.add_worker(order)
        await until(empty, lambda s: s.worker("w").state is WorkerState.ACTIVE)


async def test_concurrent_requests_do_not_exceed_the_limit_of_sessions(
    small_server: ServerWithoutWeb,
) -> None:
    async with small_server.open() as local_server:
        results = await asyncio.gather(
            *(local_server.session("scripted") for _ in range(6)), return_exceptions=True
        )
        assert sum(isinstance(each, TooMany) for each in results) == 4


async def test_living_agents_count_against_the_limit_after_a_restart(small_server: ServerWithoutWeb) -> None:
    async with small_server.open() as local_server:
        for number in range(2):
            session = await local_server.session("scripted")
            await send_prompt(session, prompt_of_an_endless_turn(number))
    async with small_server.open() as local_server:
        with pytest.raises(TooMany):
            await local_server.session("scripted")


async def test_an_idle_session_ends_with_a_reason(small_server: ServerWithoutWeb) -> None:
    async with small_server.open() as local_server:
        session = await local_server.session("scripted")
        snapshot = await until(session, lambda s: s.status is not SessionStatus.ACTIVE)
        assert (snapshot.status, snapshot.end_reason) == (SessionStatus.COMPLETED, "idle_timeout")
        assert snapshot.metadata == {"reason": "idle_timeout"}
        assert [worker.state for worker in snapshot.workers.values()] == [WorkerState.TERMINATED]


async def test_an_unseen_turn_stays_in_the_inbox_when_its_session_ends_idle(
    small_server: ServerWithoutWeb,
) -> None:
    """A user finds in the inbox in the morning what an agent finished at night."""
    async with small_server.open() as local_server:
        idle, ended = [await local_server.session("scripted") for _ in range(2)]
        for session in (idle, ended):
            await run_turn(session, "[[chunk done]]")
        await ended.end(SessionStatus.COMPLETED, "user_request")
        await until(idle, lambda s: s.end_reason == "idle_timeout")
        (waiting,) = await local_server.sessions.services.store.database.read(read_unseen)
        assert (waiting.session_id, waiting.kind) == (idle.id, "finished")


async def test_a_session_without_a_prompt_since_a_restart_ends_as_idle(
    small_server: ServerWithoutWeb,
) -> None:
    async with small_server.open() as local_server:
        session = await local_server.session("scripted")
        await until(session, lambda s: primary_agent(s).state is WorkerState.ACTIVE)
    async with small_server.open() as local_server:
        session = await local_server.sessions.get(session.id)
        await until(session, lambda s: s.end_reason == "idle_timeout")


async def test_a_turn_a_permission_or_a_queued_message_keeps_a_session_active(
    small_server: ServerWithoutWeb,
) -> None:
    async with small_server.open() as local_server:
        session = await local_server.session("scripted")
        await send_prompt(session, "[[sleep 1.2]] [[permission title=x]] [[sleep 0.1]]")
        snapshot = await until(session, lambda s: s.permissions)
        assert snapshot.status is SessionStatus.ACTIVE  # the turn alone took longer than the idle timeout
        await session.pause_queue()
        await session.enqueue("later")
        await session.answer_permission(snapshot.permissions[0].permission.id, "yes", "ada")
        await until(session, lambda s: s.conversations[primary_agent(s).id].turn is None)
        await session.clear_queue()
        await until(session, lambda s: s.status is SessionStatus.COMPLETED)
        ended = [event for event in await local_server.events(session) if isinstance(event.fact, TurnEnd)]
        assert [event.fact.stop_reason for event in ended if isinstance(event.fact, TurnEnd)] == ["end_turn"]
