"""What does not wait for ever: permissions nobody answers, agents that will not be cancelled."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bullpen.domain.states import WorkerState
from support.server import end_processes_of
from support.server_without_web import ServerWithoutWeb, is_idle, run_turn, send_prompt, until

IN_TIME = "5"  # seconds in which anybody comes to do something, however busy the machine is


@pytest.fixture
async def hasty_house(tmp_path: Path) -> AsyncIterator[ServerWithoutWeb]:
    """A second for a permission, a second to be cancelled."""
    this = ServerWithoutWeb(tmp_path, BULLPEN_PERMISSION_TIMEOUT="1", BULLPEN_CANCEL_GRACE="1")
    this.define_agent()
    this.define_agent("deaf", {"agent": {"on_cancel": "ignore"}})
    yield this
    await asyncio.to_thread(end_processes_of, this.home)


async def permissions(house: ServerWithoutWeb, session: Any) -> list[tuple[str, str | None, str | None]]:
    facts = await house.facts(session, "permission")
    return [(fact.status, fact.option_id, fact.by) for fact in facts]


async def test_a_permission_nobody_answers_is_refused_in_time(hasty_house: ServerWithoutWeb) -> None:
    async with hasty_house.open() as house:
        session = await house.session("scripted")
        await run_turn(session, "[[permission title=x]] [[chunk on]]")
        assert await permissions(house, session) == [("pending", None, None), ("selected", "no", "timeout")]
        assert await house.text(session) == "on"


async def test_one_that_offers_no_refusal_is_withdrawn(hasty_house: ServerWithoutWeb) -> None:
    options = '[{"optionId":"yes","name":"Yes","kind":"allow_once"}]'
    async with hasty_house.open() as house:
        session = await house.session("scripted")
        await run_turn(session, f"[[permission title=x 'options={options}']]")
        assert await permissions(house, session) == [("pending", None, None), ("cancelled", None, "timeout")]


async def test_the_time_of_a_permission_goes_on_while_no_server_runs(hasty_house: ServerWithoutWeb) -> None:
    hasty_house.set(BULLPEN_PERMISSION_TIMEOUT="0")
    async with hasty_house.open() as house:
        session = await house.session("scripted")
        await send_prompt(session, "[[permission title=x]] [[chunk on]]")
        asked = await until(session, lambda s: s.permissions)
    hasty_house.set(BULLPEN_PERMISSION_TIMEOUT="3600", BULLPEN_CANCEL_GRACE="30")
    async with hasty_house.open() as house:
        session = await house.sessions.get(session.id)
        assert session.snapshot.permissions == asked.permissions  # an hour is not over
    hasty_house.set(BULLPEN_PERMISSION_TIMEOUT="1")
    async with hasty_house.open() as house:
        session = await house.sessions.get(session.id)
        await until(session, is_idle)
        assert (await permissions(house, session))[-1] == ("selected", "no", "timeout")


async def test_an_answer_in_time_is_the_one_that_counts(hasty_house: ServerWithoutWeb) -> None:
    hasty_house.set(BULLPEN_PERMISSION_TIMEOUT=IN_TIME)
    async with hasty_house.open() as house:
        session = await house.session("scripted")
        await send_prompt(session, f"[[permission title=x]] [[sleep {IN_TIME}.5]]")
        asked = await until(session, lambda s: s.permissions)
        await session.answer_permission(asked.permissions[0].permission.id, "yes", "ada")
        await until(session, is_idle)
        assert (await permissions(house, session))[1:] == [("selected", "yes", "ada")]


async def test_an_agent_that_ignores_a_cancel_is_ended_and_can_be_restarted(
    hasty_house: ServerWithoutWeb,
) -> None:
    async with hasty_house.open() as house:
        session = await house.session()
        worker = await house.agent(session, "deaf")
        await send_prompt(session, "[[wait_cancel]] [[silent]]")
        await session.enqueue("later")
        await session.cancel_turn(None, "ada")
        snapshot = await until(session, lambda s: s.worker(worker.id).state is WorkerState.FAILED)
        assert "had not stopped 1 s later" in (snapshot.worker(worker.id).error or "")
        assert await house.stop_reasons(session) == ["cancelled"]
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


async def test_an_agent_that_stops_in_time_is_left_alone(hasty_house: ServerWithoutWeb) -> None:
    hasty_house.set(BULLPEN_CANCEL_GRACE=IN_TIME)
    async with hasty_house.open() as house:
        session = await house.session("scripted")
        await send_prompt(session, "[[wait_cancel]]")
        await until(session, lambda s: any(each.turn for each in s.conversations.values()))
        await session.cancel_turn(None, "ada")
        await until(session, is_idle)
        await run_turn(session, f"[[sleep {IN_TIME}.5]] [[chunk alive]]")
        assert await house.text(session) == "alive"
