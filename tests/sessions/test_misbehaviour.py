"""Agents that do not start, do not answer, or send invalid messages fail alone, with a reason."""

import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bullpen.domain.commands import AddWorker
from bullpen.domain.errors import Conflict, Invalid
from bullpen.domain.snapshot import Worker
from bullpen.domain.states import Activity, WorkerState
from bullpen.keeper.marker import find_marked
from bullpen.sessions import prompt_lookup
from bullpen.sessions.session import Session
from bullpen.workers import acp_files
from support.intervals import shortened
from support.server import end_processes_of, has_ended
from support.server_without_web import ServerWithoutWeb, run_turn, send_prompt, until

PNG = b"\x89PNG\r\n\x1a\n"


async def fail_to_start(local_server: ServerWithoutWeb, session: Session, agent_id: str) -> Worker:
    """Start an agent that cannot start, wait until its process has ended, and return its worker."""
    order = AddWorker(
        worker_id=agent_id, type="agent", agent_id=agent_id, workspace=str(local_server.workspace)
    )
    await session.add_worker(order)
    await until(session, lambda s: s.worker(agent_id).state is not WorkerState.SPAWNING)
    async with asyncio.timeout(60):
        while session.busy:
            await asyncio.sleep(0.01)
    assert local_server.sessions.services.children.get(agent_id, 1) is None
    return session.snapshot.worker(agent_id)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["{directory}/no-interpreter"], "No such file"),
        (["true"], "exit code 0"),
        (["false"], "exit code 1"),
        (["sh", "-c", "echo too bad >&2; exit 9"], "crashed (exit code 9): too bad"),
        (["sh", "-c", "kill -SEGV $$"], "SIGSEGV"),
        (["sh", "-c", "kill -40 $$"], "SIGRTMIN+6"),
        (["sh", "-c", "read line; exit 4"], "exit code 4"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
async def test_an_agent_that_cannot_start_fails_with_the_reason(
    local_server: ServerWithoutWeb, tmp_path: Path, command: list[str], reason: str
) -> None:
    (tmp_path / "no-interpreter").write_text("#!/no/such/interpreter\n")
    (tmp_path / "no-interpreter").chmod(0o755)
    words = [word.format(directory=tmp_path) for word in command]
    local_server.registry.add("bad", {"name": "Bad", "kind": "acp", "command": words})
    session = await local_server.session()
    worker = await fail_to_start(local_server, session, "bad")
    assert worker.state is WorkerState.FAILED
    assert reason in (worker.error or "")


@pytest.mark.parametrize("program", ["no-such-program", "{directory}/not-executable", "{directory}"])
async def test_an_agent_whose_program_is_missing_is_refused_before_anything_is_stored(
    local_server: ServerWithoutWeb, tmp_path: Path, program: str
) -> None:
    (tmp_path / "not-executable").write_text("#!/bin/sh\n")
    words = [program.format(directory=tmp_path)]
    local_server.registry.add(
        "gone", {"name": "Gone", "kind": "acp", "command": words, "install": "get gone"}
    )
    with pytest.raises(Conflict, match=r"Gone is not installed .* to install it, run: get gone"):
        await local_server.session("gone")
    assert (await local_server.records.list_sessions()).sessions == []
    session = await local_server.session()
    order = AddWorker(worker_id="gone", type="agent", agent_id="gone", workspace=str(local_server.workspace))
    with pytest.raises(Conflict, match="get gone"):
        await session.add_worker(order)
    assert session.snapshot.workers == {}


@pytest.fixture
async def hasty_server(tmp_path: Path) -> AsyncIterator[ServerWithoutWeb]:
    """Allow an agent one second to answer when it is started."""
    server = ServerWithoutWeb(tmp_path, BULLPEN_AGENT_START_TIMEOUT="1")
    async with server.open():
        yield server
    await asyncio.to_thread(end_processes_of, server.home)


async def test_an_agent_that_writes_but_never_answers_initialize_fails_with_its_stderr(
    hasty_server: ServerWithoutWeb,
) -> None:
    script = "echo first >&2; echo no network >&2; while sleep 0.1; do echo still starting; done"
    words = ["sh", "-c", script]
    hasty_server.registry.add("chatty", {"name": "Chatty", "kind": "acp", "command": words})
    session = await hasty_server.session()
    worker = await fail_to_start(hasty_server, session, "chatty")
    assert (worker.state, worker.error) == (WorkerState.FAILED, "it did not answer within 1 s: no network")
    (failed,) = await hasty_server.facts(session, "worker_failed")
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
async def test_an_agent_that_does_not_answer_during_its_start_fails_after_the_timeout(
    hasty_server: ServerWithoutWeb, script: dict[str, Any]
) -> None:
    hasty_server.define_agent("silent", script | {"agent": {"ignore_term": True}})
    worker = await fail_to_start(hasty_server, await hasty_server.session(), "silent")
    assert (worker.state, worker.error) == (WorkerState.FAILED, "it did not answer within 1 s")


async def test_an_agent_with_another_protocol_version_is_refused(local_server: ServerWithoutWeb) -> None:
    local_server.define_agent("new", {"agent": {"initialize": {"protocolVersion": 2}}})
    worker = await fail_to_start(local_server, await local_server.session(), "new")
    assert worker.error == "New speaks version 2 of ACP, Bullpen speaks 1"


async def test_an_agent_that_asks_for_a_login_after_its_login_fails(local_server: ServerWithoutWeb) -> None:
    methods = [{"id": "key", "type": "env_var", "vars": [{"name": "PATH"}]}]
    refusing = [{"do": "error", "code": -32000, "text": "who are you?"}]
    script = {"agent": {"initialize": {"authMethods": methods}}, "on": {"session/new": refusing}}
    local_server.define_agent("closed", script)
    worker = await fail_to_start(local_server, await local_server.session(), "closed")
    assert "needs a login" in (worker.error or "")


async def test_an_agent_that_can_log_in_with_a_variable_does_so(local_server: ServerWithoutWeb) -> None:
    methods = [{"id": "key", "type": "env_var", "vars": [{"name": "PATH"}]}]
    local_server.define_agent("locked", {"agent": {"initialize": {"authMethods": methods}}})
    session = await local_server.session()
    await local_server.agent(session, "locked")
    await run_turn(session, "[[chunk in]]")
    assert await local_server.text(session) == "in"


INVALID_MESSAGES = (
    "[[garbage]] [[bytes ff00fe0a]] [[bytes 7b7d0a]] [[bytes 5b5d0a]] [[bytes 6e756c6c0a]] "
    "[[bytes 31653939390a]] [[notify method=x]] [[notify method=session/update]] [[update update={}]] "
    "[[slices text=Grüße]] [[ask method=craft/drainMidTurnQueue wait=false]] "
    "[[ask method=session/request_permission wait=false]] [[stderr text=noise times=200]] "
    "[[tool_update toolCallId=never status=completed]]"
)


async def test_invalid_messages_are_recorded_and_the_agent_keeps_running(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    worker = await local_server.agent(session)
    await run_turn(session, INVALID_MESSAGES + "[[chunk ' end']]")
    assert await local_server.text(session) == "Grüße end"
    assert session.snapshot.worker(worker.id).state is WorkerState.ACTIVE
    assert len(await local_server.events(session, "diagnostic")) >= 5
    assert session.snapshot.permissions == []


@pytest.mark.parametrize("behaviour", [{"answer_ids": "text"}, {"answer_ids": "none"}, {"ids": "uuid"}])
async def test_unusual_message_ids_are_accepted(
    local_server: ServerWithoutWeb, behaviour: dict[str, Any]
) -> None:
    local_server.define_agent("odd", {"agent": behaviour})
    session = await local_server.session()
    await local_server.agent(session, "odd")
    await run_turn(session, "[[write path=f content=x]] [[chunk ok]]")
    assert await local_server.text(session) == "ok"


async def test_a_line_that_is_too_long_is_skipped_and_the_next_one_is_read(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    await local_server.agent(session)
    size = 200 << 20 if os.environ.get("BULLPEN_FAULTS") == "full" else 70 << 20
    await run_turn(session, f"[[chunk before]] [[huge size={size}]] [[chunk after]]")
    assert await local_server.text(session) == "beforeafter"
    (skipped,) = [fact for fact in await local_server.facts(session, "diagnostic") if fact.skipped]
    assert skipped.skipped == size + 1


async def test_a_crash_of_one_agent_does_not_disturb_another(local_server: ServerWithoutWeb) -> None:
    session = await local_server.session()
    first = await local_server.agent(session)
    second = await local_server.agent(session, role="second")
    await send_prompt(session, "[[stream n=50 delay=0.01]] [[chunk ' done']]", role="second")
    await send_prompt(session, "[[crash]]")
    await until(session, lambda s: s.worker(first.id).state is WorkerState.FAILED)
    await until(session, lambda s: s.worker(second.id).activity is Activity.IDLE)
    assert (await local_server.text(session)).endswith("<49> done")


async def test_an_agent_cannot_read_or_write_files_outside_its_workspace(
    local_server: ServerWithoutWeb,
) -> None:
    secret = local_server.workspace.parent / "secret"
    secret.write_text("secret")
    (local_server.workspace / "link").symlink_to(secret)
    session = await local_server.session()
    await local_server.agent(session)
    for path in ("../secret", str(secret), "link", "a/../../secret", "/etc/passwd"):
        step = json.dumps({"path": path, "content": "mine"})
        await run_turn(session, f"[[ask method=fs/write_text_file 'params={step}']]")
        await run_turn(session, f"[[ask method=fs/read_text_file 'params={step}']]")
    assert await local_server.stop_reasons(session) == ["error"] * 10
    assert secret.read_text() == "secret"
    assert await local_server.events(session, "file_read", "file_write") == []


async def test_a_file_too_large_for_a_line_is_refused_and_the_agent_keeps_running(
    local_server: ServerWithoutWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acp_files, "MAX_LINE_BYTES", 1000)
    (local_server.workspace / "binary").write_bytes(b"\xff" * 500)  # each byte becomes three bytes of JSON
    session = await local_server.session()
    await local_server.agent(session)
    await run_turn(session, '[[ask method=fs/read_text_file \'params={"path": "binary"}\']]')
    await run_turn(session, "[[chunk here]]")
    assert await local_server.stop_reasons(session) == ["error", "end_turn"]
    assert (await local_server.text(session)).endswith("here")


async def test_images_too_large_for_a_line_are_refused_and_the_agent_keeps_running(
    local_server: ServerWithoutWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_lookup, "MAX_IMAGE_BYTES_PER_PROMPT", 100)
    session = await local_server.session()
    await local_server.agent(session)
    images = local_server.sessions.services.images
    ids = [images.add(session.id, PNG + bytes(60)).id for _ in range(2)]
    with pytest.raises(Invalid, match="with another"):
        await send_prompt(session, "look", image_ids=ids)
    await run_turn(session, "[[chunk here]]", image_ids=ids[:1])
    assert await local_server.stop_reasons(session) == ["end_turn"]


async def test_an_agent_that_floods_its_output_can_be_ended(local_server: ServerWithoutWeb) -> None:
    """The server no longer reads its output, of which it writes more than a keeper keeps unread."""
    flooding = "import os, signal, sys, time\n" + "".join(
        f"signal.signal(signal.{name}, signal.SIG_IGN)\n" for name in ("SIGHUP", "SIGTERM")
    )
    flooding += "sys.stdin.read()\nwhile True: os.write(1, b'flood\\n' * 10000)"
    local_server.registry.add(
        "deaf", {"name": "Deaf", "kind": "acp", "command": [sys.executable, "-c", flooding]}
    )
    session = await local_server.session()
    order = AddWorker(worker_id="deaf", type="agent", agent_id="deaf", workspace=str(local_server.workspace))
    await session.add_worker(order)
    await until(
        session, lambda s: s.worker("deaf").pid or local_server.sessions.services.children.get("deaf", 1)
    )
    with shortened(stop=1):
        await session.end_worker("deaf", "done")
        async with asyncio.timeout(60):
            while session.busy:
                await asyncio.sleep(0.01)
    assert local_server.sessions.services.children.get("deaf", 1) is None


async def test_processes_that_an_agent_started_end_with_it(local_server: ServerWithoutWeb) -> None:
    session = await local_server.session()
    worker = await local_server.agent(session)
    await run_turn(session, "[[orphan sleep 54321]]")
    marker = local_server.sessions.services.children.marker(worker.id, 1)
    assert [pid for pid, _, _ in find_marked(marker) if pid != worker.pid]
    await send_prompt(session, "[[crash]]")
    await until(session, lambda s: s.worker(worker.id).state is WorkerState.FAILED)
    async with asyncio.timeout(60):
        while list(find_marked(marker)):
            await asyncio.sleep(0.01)


async def test_an_agent_cannot_hide_processes_of_its_terminal_with_its_own_marker(
    local_server: ServerWithoutWeb,
) -> None:
    session = await local_server.session()
    await local_server.agent(session)
    env = [{"name": "BULLPEN_CHILD", "value": "another/marker/1"}, {"name": "MINE", "value": "it is"}]
    script = "echo $MINE; setsid sleep 54321 & sleep 54320"
    params = {"command": "/bin/sh", "args": ["-c", script], "env": env}
    await run_turn(session, f"[[ask method=terminal/create {shlex.quote('params=' + json.dumps(params))}]]")
    terminal = terminal_of(session)
    async with asyncio.timeout(60):
        while not (pid := _pid_of("sleep", "54321")):
            await asyncio.sleep(0.01)
    _, output = local_server.sessions.services.read_tail(terminal.id, 1, 100)
    assert output == b"it is\r\n"
    await session.end_worker(terminal.id, "enough")
    async with asyncio.timeout(60):
        while not has_ended(pid):
            await asyncio.sleep(0.01)


def _pid_of(*words: str) -> int | None:
    """Return the pid of the process with this command line; in its sandbox it has another one."""
    found = (each.pid for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] == list(words))
    return next(found, None)


async def test_a_terminal_of_an_agent_does_not_start_outside_the_workspace_root(
    local_server: ServerWithoutWeb,
) -> None:
    directory, outside = local_server.workspace / "directory", local_server.workspace.parent / "outside"
    directory.mkdir()
    outside.mkdir()
    session = await local_server.session()
    await local_server.agent(session)
    params = {"command": "true", "cwd": str(directory)}
    await run_turn(session, f"[[ask method=terminal/create {shlex.quote('params=' + json.dumps(params))}]]")
    terminal = terminal_of(session)
    await until(session, lambda s: s.worker(terminal.id).state is WorkerState.EXITED)
    directory.rmdir()
    directory.symlink_to(outside)
    await session.restart_worker(terminal.id)
    await until(session, lambda s: s.worker(terminal.id).state in (WorkerState.FAILED, WorkerState.EXITED))
    assert "outside the workspace root" in (session.snapshot.worker(terminal.id).error or "")


def terminal_of(session: Session) -> Worker:
    (terminal,) = [each for each in session.snapshot.workers.values() if each.type == "terminal"]
    return terminal
