"""Deadlines: for the answer to a permission, and for an agent that ignores a cancel."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bullpen.domain.states import WorkerState
from support.server import end_processes_of
from support.server_without_web import ServerWithoutWeb, is_idle, run_turn, send_prompt, until

LONG_ENOUGH = "5"  # seconds in which the test can act, also on a busy machine


@pytest.fixture
async def hasty_server(tmp_path: Path) -> AsyncIterator[ServerWithoutWeb]:
    """Allow one second to answer a permission and one second to stop after a cancel."""
    server = ServerWithoutWeb(tmp_path, BULLPEN_PERMISSION_TIMEOUT="1", BULLPEN_CANCEL_GRACE="1")
    server.define_agent()
    server.define_agent("stubborn", {"agent": {"on_cancel": "ignore"}})
    yield server
    await asyncio.to_thread(end_processes_of, server.home)


async def permissions(
    local_server: ServerWithoutWeb, session: Any
) -> list[tuple[str, str | None, str | None]]:
    facts = await local_server.facts(session, "permission")
    return [(fact.status, fact.option_id, fact.by) for fact in facts]


async def test_a_permission_without_an_answer_is_refused_at_its_deadline(
    hasty_server: ServerWithoutWeb,
) -> None:
    async with hasty_server.open() as local_server:
        session = await local_server.session("scripted")
        await run_turn(session, "[[permission title=x]] [[chunk on]]")
        assert await permissions(local_server, session) == [
            ("pending", None, None),
            ("selected", "no", "timeout"),
        ]
        assert await local_server.text(session) == "on"


async def test_a_permission_without_a_refusing_option_is_cancelled_at_its_deadline(
    hasty_server: ServerWithoutWeb,
) -> None:
    options = '[{"optionId":"yes","name":"Yes","kind":"allow_once"}]'
    async with hasty_server.open() as local_server:
        session = await local_server.session("scripted")
        await run_turn(session, f"[[permission title=x 'options={options}']]")
        assert await permissions(local_server, session) == [
            ("pending", None, None),
            ("cancelled", None, "timeout"),
        ]


async def test_the_deadline_of_a_permission_also_passes_while_no_server_runs(
    hasty_server: ServerWithoutWeb,
) -> None:
    hasty_server.set(BULLPEN_PERMISSION_TIMEOUT="0")
    async with hasty_server.open() as local_server:
        session = await local_server.session("scripted")
        await send_prompt(session, "[[permission title=x]] [[chunk on]]")
        asked = await until(session, lambda s: s.permissions)
    hasty_server.set(BULLPEN_PERMISSION_TIMEOUT="3600", BULLPEN_CANCEL_GRACE="30")
    async with hasty_server.open() as local_server:
        session = await local_server.sessions.get(session.id)
        assert session.snapshot.permissions == asked.permissions  # its deadline is an hour away
    hasty_server.set(BULLPEN_PERMISSION_TIMEOUT="1")
    async with hasty_server.open() as local_server:
        session = await local_server.sessions.get(session.id)
        await until(session, is_idle)
        assert (await permissions(local_server, session))[-1] == ("selected", "no", "timeout")


async def test_a_permission_that_is_answered_in_time_is_not_answered_again_at_its_deadline(
    hasty_server: ServerWithoutWeb,
) -> None:
    hasty_server.set(BULLPEN_PERMISSION_TIMEOUT=LONG_ENOUGH)
    async with hasty_server.open() as local_server:
        session = await local_server.session("scripted")
        await send_prompt(session, f"[[permission title=x]] [[sleep {LONG_ENOUGH}.5]]")
        asked = await until(session, lambda s: s.permissions)
        await session.answer_permission(asked.permissions[0].permission.id, "yes", "ada")
        await until(session, is_idle)
        assert (await permissions(local_server, session))[1:] == [("selected", "yes", "ada")]


async def test_an_agent_that_ignores_a_cancel_is_killed_and_can_be_restarted(
    hasty_server: ServerWithoutWeb,
) -> None:
    async with hasty_server.open() as local_server:
        session = await local_server.session()
        worker = await local_server.agent(session, "stubborn")
        await send_prompt(session, "[[wait_cancel]] [[silent]]")
        await session.enqueue("later")
        await session.cancel_turn(None, "ada")
        snapshot = await until(session, lambda s: s.worker(worker.id).state is WorkerState.FAILED)
        assert "had not stopped 1 s later" in (snapshot.worker(worker.id).error or "")
        assert await local_server.stop_reasons(session) == ["cancelled"]
        assert (snapshot.queue.paused, len(snapshot.queue.items)) == (True, 1)
        async with asyncio.timeout(60):
            while session.busy:
                await asyncio.sleep(0.01)
        assert worker.pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(worker.pid, 0)
        await session.restart_worker(worker.id)
        await session.resume_queue()
        await until(session, lambda s: not s.queue.items and is_idle(s))


async def test_an_agent_that_stops_in_time_after_a_cancel_keeps_running(
    hasty_server: ServerWithoutWeb,
) -> None:
    hasty_server.set(BULLPEN_CANCEL_GRACE=LONG_ENOUGH)
    async with hasty_server.open() as local_server:
        session = await local_server.session("scripted")
        await send_prompt(session, "[[wait_cancel]]")
        await until(session, lambda s: any(each.turn for each in s.conversations.values()))
        await session.cancel_turn(None, "ada")
        await until(session, is_idle)
        await run_turn(session, f"[[sleep {LONG_ENOUGH}.5]] [[chunk alive]]")
        assert await local_server.text(session) == "alive"
