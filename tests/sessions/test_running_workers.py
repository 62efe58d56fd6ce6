"""The workers that run in a session, stopped and restarted at critical moments."""

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
from support.intervals import shortened
from support.server_without_web import ServerWithoutWeb, primary_agent, run_turn, send_prompt, until

STUBBORN = {"agent": {"ignore_term": True, "ignore_eof": True, "on_cancel": "ignore"}}


async def start_terminal(local_server: ServerWithoutWeb, session: Session) -> Worker:
    order = AddWorker(worker_id=new_id(), type="terminal", workspace=str(local_server.workspace))
    worker = await session.add_worker(order)
    await until(session, lambda s: s.worker(worker.id).state is WorkerState.ACTIVE)
    return session.snapshot.worker(worker.id)


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_worker_may_be_stopped_at_the_moment_it_ends(
    local_server: ServerWithoutWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await local_server.session()
    worker = await start_terminal(local_server, session)
    children = local_server.sessions.services.children
    forget, stops = children.forget, []

    def forget_and_stop(child: ChildHandle) -> None:
        """Stop the worker when its run ends: it is alive for one more iteration of the event loop."""
        forget(child)
        stops.append(asyncio.ensure_future(session.wait_until_stopped([worker.id])))

    monkeypatch.setattr(children, "forget", forget_and_stop)
    with capture_logs() as log_entries:
        child = children.get(worker.id, worker.run)
        assert child is not None
        await child.stop()
        await until(session, lambda s: not s.worker(worker.id).alive)
        async with asyncio.timeout(60):
            while not stops:
                await asyncio.sleep(0)
            await stops[0]
    assert [each for each in log_entries if each["log_level"] == "error"] == []


async def test_a_keeper_that_dies_while_a_stray_is_ended_does_not_disturb_other_sessions(
    closed_server: ServerWithoutWeb,
) -> None:
    closed_server.define_agent("stubborn", STUBBORN)
    async with closed_server.open() as local_server:
        session = await local_server.session()
        worker = await local_server.agent(session, "stubborn")
        await local_server.sessions.store.hide(session.id)  # the server is killed during a purge
        session.log.close()
    spool = closed_server.home / "spool" / worker.id
    assert spool.exists()
    with capture_logs() as log_entries:
        async with closed_server.open() as local_server:
            keeper = psutil.Process(worker.pid).parent()
            assert keeper is not None
            keeper.kill()
            await wait_until(lambda: not psutil.pid_exists(worker.pid or 0) and not spool.exists())
            assert await local_server.session()
    assert [each for each in log_entries if each["event"] == "a task failed"] == []


async def test_a_session_created_while_earlier_sessions_are_resumed_starts_once(
    closed_server: ServerWithoutWeb,
) -> None:
    """A client that waits for a restarting server may send a request immediately after its start."""
    closed_server.define_agent()
    async with closed_server.open() as local_server:
        local_server.sessions.workers_resumed.clear()
        making = asyncio.create_task(local_server.session("scripted"))
        await asyncio.wait([making], timeout=1)
        assert not making.done(), "two readers would read the output of its agent"
        await resume_sessions(local_server.sessions, local_server.records)
        session = await making
        await until(session, lambda s: primary_agent(s).state == "active")
        await run_turn(session, "[[stream n=5]]")
        assert await local_server.text(session) == "<0><1><2><3><4>"


async def test_a_process_of_an_earlier_run_is_ended_while_the_next_run_continues(
    closed_server: ServerWithoutWeb,
) -> None:
    """The first run ignored its stop, the worker was restarted, and then the server was restarted."""
    closed_server.define_agent("stubborn", STUBBORN)
    closed_server.set(BULLPEN_CANCEL_GRACE="1")
    async with closed_server.open() as local_server:
        session = await local_server.session()
        worker = await local_server.agent(session, "stubborn")
        await send_prompt(session, "[[wait_cancel]] [[silent]]")
        await session.cancel_turn(worker.id, "ada")
        await until(session, lambda s: s.worker(worker.id).state is WorkerState.FAILED)
        await session.restart_worker(worker.id)
    assert psutil.pid_exists(worker.pid or 0)
    with shortened(stop=0.5):
        async with closed_server.open() as local_server:
            session = await local_server.sessions.get(session.id)
            await until(
                session, lambda s: (s.worker(worker.id).run, s.worker(worker.id).state) == (2, "active")
            )
            await wait_until(lambda: not psutil.pid_exists(worker.pid or 0))
            children = local_server.sessions.services.children
            await wait_until(lambda: children.get(worker.id, 1) is None)
            assert (closed_server.home / "spool" / worker.id / "1").exists()  # its output is kept
            await session.end(SessionStatus.CANCELLED, "cancelled")
            await local_server.sessions.purge(session.id)
            assert not (closed_server.home / "spool" / worker.id).exists()
