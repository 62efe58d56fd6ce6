"""The workers that run in a session, and how they are ended at the worst moments."""

import asyncio
from collections.abc import Callable

import psutil
import pytest
from structlog.testing import capture_logs

from bullpen.domain.commands import AddWorker
from bullpen.domain.ids import new_id
from bullpen.domain.snapshot import Worker
from bullpen.domain.states import SessionStatus, WorkerState
from bullpen.sessions.session import Session
from bullpen.sessions.startup import resume_sessions
from bullpen.workers.children import ChildHandle
from support.server_without_web import ServerWithoutWeb, primary_agent, run_turn, send_prompt, until

STUBBORN = {"agent": {"ignore_term": True, "ignore_eof": True, "on_cancel": "ignore"}}


async def terminal(house: ServerWithoutWeb, session: Session) -> Worker:
    order = AddWorker(worker_id=new_id(), type="terminal", workspace=str(house.workspace))
    worker = await session.add_worker(order)
    await until(session, lambda s: s.worker(worker.id).state is WorkerState.ACTIVE)
    return session.snapshot.worker(worker.id)


async def soon(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_worker_may_be_stopped_in_the_moment_it_has_ended(
    house: ServerWithoutWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await house.session()
    worker = await terminal(house, session)
    children = house.sessions.services.children
    forget, stops = children.forget, []

    def forget_and_stop(child: ChildHandle) -> None:
        """The last it does: whoever is called now finds it alive, and gone a turn of the loop later."""
        forget(child)
        stops.append(asyncio.ensure_future(session.wait_until_stopped([worker.id])))

    monkeypatch.setattr(children, "forget", forget_and_stop)
    with capture_logs() as told:
        child = children.get(worker.id, worker.run)
        assert child is not None
        await child.stop()
        await until(session, lambda s: not s.worker(worker.id).alive)
        async with asyncio.timeout(60):
            while not stops:
                await asyncio.sleep(0)
            await stops[0]
    assert [each for each in told if each["log_level"] == "error"] == []


async def test_a_keeper_that_dies_while_a_stray_is_ended_takes_nobody_along(
    closed_house: ServerWithoutWeb,
) -> None:
    closed_house.define_agent("stubborn", STUBBORN)
    async with closed_house.open() as house:
        session = await house.session()
        worker = await house.agent(session, "stubborn")
        await house.sessions.store.hide(session.id)  # and the server died before it was purged
        session.log.close()
    spool = closed_house.home / "spool" / worker.id
    assert spool.exists()
    with capture_logs() as told:
        async with closed_house.open() as house:
            keeper = psutil.Process(worker.pid).parent()
            assert keeper is not None
            keeper.kill()
            await soon(lambda: not psutil.pid_exists(worker.pid or 0) and not spool.exists())
            assert await house.session()
    assert [each for each in told if each["event"] == "a task failed"] == []


async def test_a_session_made_while_the_last_ones_are_taken_up_begins_once(
    closed_house: ServerWithoutWeb,
) -> None:
    """Whoever waits for a server that restarts may ask for one in its first moment."""
    closed_house.define_agent()
    async with closed_house.open() as house:
        house.sessions.workers_resumed.clear()
        making = asyncio.create_task(house.session("scripted"))
        await asyncio.wait([making], timeout=1)
        assert not making.done(), "it would be read by two"
        await resume_sessions(house.sessions, house.records)
        session = await making
        await until(session, lambda s: primary_agent(s).state == "active")
        await run_turn(session, "[[stream n=5]]")
        assert await house.text(session) == "<0><1><2><3><4>"


async def test_an_earlier_run_that_is_left_is_ended_beside_the_next(closed_house: ServerWithoutWeb) -> None:
    """It would not end when it was told to, its worker was restarted meanwhile, and the server was killed."""
    closed_house.define_agent("stubborn", STUBBORN)
    closed_house.set(BULLPEN_CANCEL_GRACE="1")
    async with closed_house.open() as house:
        session = await house.session()
        worker = await house.agent(session, "stubborn")
        await send_prompt(session, "[[wait_cancel]] [[silent]]")
        await session.cancel_turn(worker.id, "a person")
        await until(session, lambda s: s.worker(worker.id).state is WorkerState.FAILED)
        await session.restart_worker(worker.id)
    assert psutil.pid_exists(worker.pid or 0)
    async with closed_house.open() as house:
        session = await house.sessions.get(session.id)
        await until(session, lambda s: (s.worker(worker.id).run, s.worker(worker.id).state) == (2, "active"))
        await soon(lambda: not psutil.pid_exists(worker.pid or 0))
        children = house.sessions.services.children
        await soon(lambda: children.get(worker.id, 1) is None)
        assert (closed_house.home / "spool" / worker.id / "1").exists()  # what it said is kept
        await session.end(SessionStatus.CANCELLED, "cancelled")
        await house.sessions.purge(session.id)
        assert not (closed_house.home / "spool" / worker.id).exists()
