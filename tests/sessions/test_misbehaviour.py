"""Agents that do not start, do not speak, or speak nonsense: one clear state, and nobody else is harmed."""

import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bullpen.domain.commands import AddWorker
from bullpen.domain.errors import Conflict, Invalid
from bullpen.domain.snapshot import Worker
from bullpen.domain.states import Activity, WorkerState
from bullpen.keeper.marker import find_marked
from bullpen.sessions import lookup
from bullpen.sessions.session import Session
from bullpen.workers import acp_files
from support.server import end_processes_of, has_ended
from support.server_without_web import ServerWithoutWeb, run_turn, send_prompt, until

PNG = b"\x89PNG\r\n\x1a\n"


async def end_of(house: ServerWithoutWeb, session: Session, agent_id: str) -> Worker:
    """An agent that does not begin, as it is in the end; nothing of it is left."""
    order = AddWorker(worker_id=agent_id, type="agent", agent_id=agent_id, workspace=str(house.workspace))
    await session.add_worker(order)
    await until(session, lambda s: s.worker(agent_id).state is not WorkerState.SPAWNING)
    async with asyncio.timeout(60):
        while session.busy:
            await asyncio.sleep(0.01)
    assert house.sessions.services.children.get(agent_id, 1) is None
    return session.snapshot.worker(agent_id)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["{directory}/no-interpreter"], "cannot start"),
        (["true"], "exit code 0"),
        (["false"], "exit code 1"),
        (["sh", "-c", "echo too bad >&2; exit 9"], "exit code 9: too bad"),
        (["sh", "-c", "kill -SEGV $$"], "SIGSEGV"),
        (["sh", "-c", "kill -40 $$"], "SIGRTMIN+6"),
        (["sh", "-c", "read line; exit 4"], "exit code 4"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
async def test_an_agent_that_cannot_begin_fails_with_the_reason(
    house: ServerWithoutWeb, tmp_path: Path, command: list[str], why: str
) -> None:
    (tmp_path / "no-interpreter").write_text("#!/no/such/interpreter\n")
    (tmp_path / "no-interpreter").chmod(0o755)
    words = [word.format(directory=tmp_path) for word in command]
    house.registry.add("bad", {"name": "Bad", "kind": "acp", "command": words})
    session = await house.session()
    worker = await end_of(house, session, "bad")
    assert worker.state is WorkerState.FAILED
    assert why in (worker.error or "")


@pytest.mark.parametrize("program", ["no-such-program", "{directory}/not-executable", "{directory}"])
async def test_an_agent_whose_program_is_missing_is_refused_before_anything_is_stored(
    house: ServerWithoutWeb, tmp_path: Path, program: str
) -> None:
    (tmp_path / "not-executable").write_text("#!/bin/sh\n")
    words = [program.format(directory=tmp_path)]
    house.registry.add("gone", {"name": "Gone", "kind": "acp", "command": words, "install": "get gone"})
    with pytest.raises(Conflict, match=r"Gone is not installed .* to install it, run: get gone"):
        await house.session("gone")
    assert (await house.records.list_sessions()).sessions == []
    session = await house.session()
    order = AddWorker(worker_id="gone", type="agent", agent_id="gone", workspace=str(house.workspace))
    with pytest.raises(Conflict, match="get gone"):
        await session.add_worker(order)
    assert session.snapshot.workers == {}


@pytest.fixture
async def hasty_house(tmp_path: Path) -> AsyncIterator[ServerWithoutWeb]:
    """A house that gives an agent one second to answer when it is started."""
    this = ServerWithoutWeb(tmp_path, BULLPEN_AGENT_START_TIMEOUT="1")
    async with this.open():
        yield this
    await asyncio.to_thread(end_processes_of, this.home)


async def test_an_agent_that_talks_but_never_answers_initialize_fails_with_its_stderr(
    hasty_house: ServerWithoutWeb,
) -> None:
    chatter = "echo first >&2; echo no network >&2; while sleep 0.1; do echo still starting; done"
    words = ["sh", "-c", chatter]
    hasty_house.registry.add("chatty", {"name": "Chatty", "kind": "acp", "command": words})
    session = await hasty_house.session()
    worker = await end_of(hasty_house, session, "chatty")
    assert (worker.state, worker.error) == (WorkerState.FAILED, "it did not answer within 1 s: no network")
    (failed,) = await hasty_house.facts(session, "worker_failed")
    assert failed.stderr == "first\nno network"


@pytest.mark.parametrize(
    "script",
    [
        {"on": {"initialize": ["silent"]}},
        {"on": {"session/new": ["silent"]}},
        {"on": {"initialize": ["stop"]}},
        {"on": {"initialize": ["close_stdout", "sleep 1000"]}},
    ],
    ids=["initialize", "session/new", "stopped", "closed"],
)
async def test_an_agent_that_is_silent_in_its_handshake_is_given_up(
    hasty_house: ServerWithoutWeb, script: dict[str, Any]
) -> None:
    hasty_house.define_agent("silent", script | {"agent": {"ignore_term": True}})
    worker = await end_of(hasty_house, await hasty_house.session(), "silent")
    assert (worker.state, worker.error) == (WorkerState.FAILED, "it did not answer within 1 s")


async def test_one_of_another_version_is_refused(house: ServerWithoutWeb) -> None:
    house.define_agent("new", {"agent": {"initialize": {"protocolVersion": 2}}})
    worker = await end_of(house, await house.session(), "new")
    assert worker.error == "New speaks version 2 of ACP, Bullpen speaks 1"


async def test_one_that_asks_to_log_in_again_and_again_is_given_up(house: ServerWithoutWeb) -> None:
    methods = [{"id": "key", "type": "env_var", "vars": [{"name": "PATH"}]}]
    refusing = [{"do": "error", "code": -32000, "text": "who are you?"}]
    script = {"agent": {"initialize": {"authMethods": methods}}, "on": {"session/new": refusing}}
    house.define_agent("closed", script)
    worker = await end_of(house, await house.session(), "closed")
    assert "needs a login" in (worker.error or "")


async def test_one_that_can_log_in_by_itself_does(house: ServerWithoutWeb) -> None:
    methods = [{"id": "key", "type": "env_var", "vars": [{"name": "PATH"}]}]
    house.define_agent("locked", {"agent": {"initialize": {"authMethods": methods}}})
    session = await house.session()
    await house.agent(session, "locked")
    await run_turn(session, "[[chunk in]]")
    assert await house.text(session) == "in"


NONSENSE = (
    "[[garbage]] [[bytes ff00fe0a]] [[bytes 7b7d0a]] [[bytes 5b5d0a]] [[bytes 6e756c6c0a]] "
    "[[bytes 31653939390a]] [[notify method=x]] [[notify method=session/update]] [[update update={}]] "
    "[[slices text=Grüße]] [[ask method=craft/drainMidTurnQueue wait=false]] "
    "[[ask method=session/request_permission wait=false]] [[stderr text=noise times=200]] "
    "[[tool_update toolCallId=never status=completed]]"
)


async def test_nonsense_is_kept_and_the_agent_goes_on(house: ServerWithoutWeb) -> None:
    session = await house.session()
    worker = await house.agent(session)
    await run_turn(session, NONSENSE + "[[chunk ' end']]")
    assert await house.text(session) == "Grüße end"
    assert session.snapshot.worker(worker.id).state is WorkerState.ACTIVE
    assert len(await house.events(session, "diagnostic")) >= 5
    assert session.snapshot.permissions == []


@pytest.mark.parametrize("manners", [{"answer_ids": "text"}, {"answer_ids": "none"}, {"ids": "uuid"}])
async def test_odd_ids_are_understood(house: ServerWithoutWeb, manners: dict[str, Any]) -> None:
    house.define_agent("odd", {"agent": manners})
    session = await house.session()
    await house.agent(session, "odd")
    await run_turn(session, "[[write path=f content=x]] [[chunk ok]]")
    assert await house.text(session) == "ok"


async def test_a_line_that_is_too_long_is_left_out_and_the_next_one_read(house: ServerWithoutWeb) -> None:
    session = await house.session()
    await house.agent(session)
    size = 200 << 20 if os.environ.get("BULLPEN_FAULTS") == "full" else 70 << 20
    await run_turn(session, f"[[chunk before]] [[huge size={size}]] [[chunk after]]")
    assert await house.text(session) == "beforeafter"
    (skipped,) = [fact for fact in await house.facts(session, "diagnostic") if fact.skipped]
    assert skipped.skipped == size + 1


async def test_a_crash_of_one_agent_leaves_the_other_alone(house: ServerWithoutWeb) -> None:
    session = await house.session()
    first = await house.agent(session)
    second = await house.agent(session, role="second")
    await send_prompt(session, "[[stream n=50 delay=0.01]] [[chunk ' done']]", role="second")
    await send_prompt(session, "[[crash]]")
    await until(session, lambda s: s.worker(first.id).state is WorkerState.FAILED)
    await until(session, lambda s: s.worker(second.id).activity is Activity.IDLE)
    assert (await house.text(session)).endswith("<49> done")


async def test_what_a_hostile_agent_asks_of_files_stays_outside_its_reach(house: ServerWithoutWeb) -> None:
    secret = house.workspace.parent / "secret"
    secret.write_text("secret")
    (house.workspace / "link").symlink_to(secret)
    session = await house.session()
    await house.agent(session)
    for path in ("../secret", str(secret), "link", "a/../../secret", "/etc/passwd"):
        step = json.dumps({"path": path, "content": "mine"})
        await run_turn(session, f"[[ask method=fs/write_text_file 'params={step}']]")
        await run_turn(session, f"[[ask method=fs/read_text_file 'params={step}']]")
    assert await house.stop_reasons(session) == ["error"] * 10
    assert secret.read_text() == "secret"
    assert await house.events(session, "file_read", "file_write") == []


async def test_a_file_that_fits_into_no_line_is_refused_and_the_agent_goes_on(
    house: ServerWithoutWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acp_files, "MAX_LINE_BYTES", 1000)
    (house.workspace / "binary").write_bytes(b"\xff" * 500)  # each becomes three bytes
    session = await house.session()
    await house.agent(session)
    await run_turn(session, '[[ask method=fs/read_text_file \'params={"path": "binary"}\']]')
    await run_turn(session, "[[chunk here]]")
    assert await house.stop_reasons(session) == ["error", "end_turn"]
    assert (await house.text(session)).endswith("here")


async def test_images_that_fit_into_no_line_are_refused_and_the_agent_goes_on(
    house: ServerWithoutWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "MAX_IMAGE_BYTES_PER_PROMPT", 100)
    session = await house.session()
    await house.agent(session)
    images = house.sessions.services.images
    ids = [images.add(session.id, PNG + bytes(60)).id for _ in range(2)]
    with pytest.raises(Invalid, match="with another"):
        await send_prompt(session, "look", image_ids=ids)
    await run_turn(session, "[[chunk here]]", image_ids=ids[:1])
    assert await house.stop_reasons(session) == ["end_turn"]


async def test_an_agent_that_floods_when_it_is_ended_is_ended_all_the_same(house: ServerWithoutWeb) -> None:
    """More than its keeper keeps unread: nobody reads it any more, and it must not wait for that."""
    flooding = "import os, signal, sys, time\n" + "".join(
        f"signal.signal(signal.{name}, signal.SIG_IGN)\n" for name in ("SIGHUP", "SIGTERM")
    )
    flooding += "sys.stdin.read()\nwhile True: os.write(1, b'flood\\n' * 10000)"
    house.registry.add("deaf", {"name": "Deaf", "kind": "acp", "command": [sys.executable, "-c", flooding]})
    session = await house.session()
    order = AddWorker(worker_id="deaf", type="agent", agent_id="deaf", workspace=str(house.workspace))
    await session.add_worker(order)
    await until(session, lambda s: s.worker("deaf").pid or house.sessions.services.children.get("deaf", 1))
    await session.end_worker("deaf", "done")
    async with asyncio.timeout(60):
        while session.busy:
            await asyncio.sleep(0.01)
    assert house.sessions.services.children.get("deaf", 1) is None


async def test_what_an_agent_left_behind_ends_with_it(house: ServerWithoutWeb) -> None:
    session = await house.session()
    worker = await house.agent(session)
    await run_turn(session, "[[orphan sleep 54321]]")
    marker = house.sessions.services.children.marker(worker.id, 1)
    assert [pid for pid, _, _ in find_marked(marker) if pid != worker.pid]
    await send_prompt(session, "[[crash]]")
    await until(session, lambda s: s.worker(worker.id).state is WorkerState.FAILED)
    async with asyncio.timeout(60):
        while list(find_marked(marker)):
            await asyncio.sleep(0.01)


async def test_an_agent_cannot_hide_what_its_terminal_left_behind(house: ServerWithoutWeb) -> None:
    left = house.workspace / "left"
    session = await house.session()
    await house.agent(session)
    env = [{"name": "BULLPEN_CHILD", "value": "nobody/of/1"}, {"name": "MINE", "value": "it is"}]
    script = f"echo $MINE; setsid sleep 54321 & echo $! > {left}.new; mv {left}.new {left}; sleep 54321"
    params = {"command": "/bin/sh", "args": ["-c", script], "env": env}
    await run_turn(session, f"[[ask method=terminal/create {shlex.quote('params=' + json.dumps(params))}]]")
    terminal = terminal_of(session)
    async with asyncio.timeout(60):
        while not left.exists():
            await asyncio.sleep(0.01)
    _, said = house.sessions.services.read_tail(terminal.id, 1, 100)
    assert said == b"it is\r\n"
    await session.end_worker(terminal.id, "enough")
    async with asyncio.timeout(60):
        while not has_ended(int(left.read_text())):
            await asyncio.sleep(0.01)


async def test_a_terminal_of_an_agent_does_not_begin_outside_the_root(house: ServerWithoutWeb) -> None:
    place, outside = house.workspace / "place", house.workspace.parent / "outside"
    place.mkdir()
    outside.mkdir()
    session = await house.session()
    await house.agent(session)
    params = {"command": "true", "cwd": str(place)}
    await run_turn(session, f"[[ask method=terminal/create {shlex.quote('params=' + json.dumps(params))}]]")
    terminal = terminal_of(session)
    await until(session, lambda s: s.worker(terminal.id).state is WorkerState.EXITED)
    place.rmdir()
    place.symlink_to(outside)
    await session.restart_worker(terminal.id)
    await until(session, lambda s: s.worker(terminal.id).state in (WorkerState.FAILED, WorkerState.EXITED))
    assert "outside the workspace root" in (session.snapshot.worker(terminal.id).error or "")


def terminal_of(session: Session) -> Worker:
    (terminal,) = [each for each in session.snapshot.workers.values() if each.type == "terminal"]
    return terminal
