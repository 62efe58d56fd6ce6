"""Twenty ways in which an agent fails to start: each leaves a failed worker, no zombie and no descriptor."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bullpen.domain.commands import AddWorker
from bullpen.domain.states import WorkerState
from bullpen.keeper.marker import find_marked
from bullpen.sessions.session import Session
from support.server import end_processes_of
from support.server_without_web import ServerWithoutWeb, until

NO_ANSWER = "did not answer"
START_TIMEOUT = "10"  # seconds; enough for every agent that answers, also on a busy machine
STDERR_BYTES = 1 << (30 if os.environ.get("BULLPEN_FAULTS") == "full" else 24)

COMMANDS: dict[str, tuple[list[str], str]] = {
    "no interpreter": (["{directory}/no-interpreter"], "No such file"),
    "no program": (["{directory}/garbage"], "not found"),
    "exits at once": (["true"], "exit code 0"),
    "fails at once": (["false"], "exit code 1"),
    "fails with a message": (["sh", "-c", "echo too bad >&2; exit 9"], "crashed (exit code 9): too bad"),
    "killed": (["sh", "-c", "kill -KILL $$"], "SIGKILL"),
    "crashes": (["sh", "-c", "kill -SEGV $$"], "SIGSEGV"),
    "exits during initialize": (["sh", "-c", "read line; exit 4"], "exit code 4"),
    "prints much to stderr": (["sh", "-c", f"head -c {STDERR_BYTES} /dev/zero >&2; exit 3"], "exit code 3"),
    "echoes": (["sh", "-c", "read line; echo hello; exit 5"], "exit code 5"),
    "closes its output": (["sh", "-c", "exec >&-; sleep 1000"], NO_ANSWER),
    "does not read": (["sleep", "1000"], NO_ANSWER),
}
SCRIPTS: dict[str, tuple[dict[str, Any], str]] = {
    "silent": ({"on": {"initialize": ["silent"]}}, NO_ANSWER),
    "silent later": ({"on": {"session/new": ["silent"]}}, NO_ANSWER),
    "stopped": ({"on": {"initialize": ["stop"]}}, NO_ANSWER),
    "of another version": ({"agent": {"initialize": {"protocolVersion": 2}}}, "speaks version 2"),
    "refuses": ({"on": {"session/new": ["error text=no-way"]}}, "no-way"),
    "crashes in its handshake": ({"on": {"session/new": ["crash"]}}, "SIGKILL"),
    "ignores signals": ({"agent": {"ignore_term": True}, "on": {"initialize": ["silent"]}}, NO_ANSWER),
}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerWithoutWeb]:
    this = ServerWithoutWeb(tmp_path, AGENT_MAX_SESSIONS="0", BULLPEN_AGENT_START_TIMEOUT=START_TIMEOUT)
    async with this.open():
        yield this
    await asyncio.to_thread(end_processes_of, this.home)


async def test_an_agent_that_cannot_start_fails_with_the_reason_and_leaves_nothing(
    server: ServerWithoutWeb, tmp_path: Path
) -> None:
    server.define_agent()
    reasons = _define(server, tmp_path)
    assert len(reasons) >= 18
    session = await server.session()
    first = await server.agent(session)
    keeper = psutil.Process(first.pid).parent()
    assert keeper is not None
    await session.end_worker(first.id, "done")
    before = _open_files(), keeper.num_fds()
    for kind, reason in reasons.items():
        if reason != NO_ANSWER:
            await _run(server, session, kind)
    await asyncio.gather(
        *(_run(server, session, kind) for kind, reason in reasons.items() if reason == NO_ANSWER)
    )
    for kind, reason in reasons.items():
        worker = session.snapshot.worker(_id(kind))
        assert worker.state is WorkerState.FAILED, (kind, worker)
        assert reason in (worker.error or ""), (kind, worker.error)
        marker = server.sessions.services.children.marker(worker.id, 1)
        assert not list(find_marked(marker)), kind
    async with asyncio.timeout(30):
        while (_open_files(), keeper.num_fds()) != before:
            await asyncio.sleep(0.05)
    assert [child for child in keeper.children(recursive=True) if child.status() == "zombie"] == []
    await server.agent(session)  # the next agent starts


async def _run(server: ServerWithoutWeb, session: Session, kind: str) -> None:
    """Start an agent of this kind and wait until it has failed and the keeper has forgotten its child."""
    name, workspace = _id(kind), str(server.workspace)
    await session.add_worker(
        AddWorker(worker_id=name, type="agent", agent_id=name, role=name, workspace=workspace)
    )
    await until(session, lambda s: s.worker(name).state is not WorkerState.SPAWNING)
    async with asyncio.timeout(60):
        while session.busy or server.sessions.services.children.get(name, 1) is not None:
            await asyncio.sleep(0.01)


def _open_files() -> Counter[str]:
    """Count the open files of this process, without the database, whose number of readers varies."""
    found = [os.readlink(fd) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    return Counter(name.partition(":")[0] for name in found if "bullpen.db" not in name)


def _define(server: ServerWithoutWeb, directory: Path) -> dict[str, str]:
    """Define an agent of each kind; return the text that the error of each must contain."""
    for name, text in (("no-interpreter", "#!/no/such/interpreter\n"), ("garbage", "\x7fELF nonsense")):
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    for kind, (command, _) in COMMANDS.items():
        words = [word.replace("{directory}", str(directory)) for word in command]
        server.registry.add(_id(kind), {"name": kind, "kind": "acp", "command": words})
    for kind, (script, _) in SCRIPTS.items():
        server.define_agent(_id(kind), script)
    return {kind: reason for kind, (_, reason) in (COMMANDS | SCRIPTS).items()}


def _id(kind: str) -> str:
    return kind.replace(" ", "-")
