"""Twenty ways for an agent not to begin (R-13): one clear state each, no zombie and no descriptor left."""

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

SILENT = "did not answer"
ANSWER_WITHIN = "10"  # seconds; enough for every agent that answers, on a busy machine too
STDERR = 1 << (30 if os.environ.get("BULLPEN_FAULTS") == "full" else 24)  # bytes of the one that complains

COMMANDS: dict[str, tuple[list[str], str]] = {
    "no interpreter": (["{place}/no-interpreter"], "cannot start"),
    "no program": (["{place}/garbage"], "cannot start"),
    "exits at once": (["true"], "exit code 0"),
    "fails at once": (["false"], "exit code 1"),
    "fails with a word": (["sh", "-c", "echo too bad >&2; exit 9"], "exit code 9: too bad"),
    "killed": (["sh", "-c", "kill -KILL $$"], "SIGKILL"),
    "crashes": (["sh", "-c", "kill -SEGV $$"], "SIGSEGV"),
    "exits during initialize": (["sh", "-c", "read line; exit 4"], "exit code 4"),
    "complains": (["sh", "-c", f"head -c {STDERR} /dev/zero >&2; exit 3"], "exit code 3"),
    "echoes": (["sh", "-c", "read line; echo hello; exit 5"], "exit code 5"),
    "closes its output": (["sh", "-c", "exec >&-; sleep 1000"], SILENT),
    "does not read": (["sleep", "1000"], SILENT),
}
SCRIPTS: dict[str, tuple[dict[str, Any], str]] = {
    "silent": ({"on": {"initialize": ["silent"]}}, SILENT),
    "silent later": ({"on": {"session/new": ["silent"]}}, SILENT),
    "stopped": ({"on": {"initialize": ["stop"]}}, SILENT),
    "of another version": ({"agent": {"initialize": {"protocolVersion": 2}}}, "speaks version 2"),
    "refuses": ({"on": {"session/new": ["error text=no-way"]}}, "no-way"),
    "crashes in its handshake": ({"on": {"session/new": ["crash"]}}, "SIGKILL"),
    "deaf to signals": ({"agent": {"ignore_term": True}, "on": {"initialize": ["silent"]}}, SILENT),
}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[ServerWithoutWeb]:
    this = ServerWithoutWeb(tmp_path, AGENT_MAX_SESSIONS="0", BULLPEN_AGENT_START_TIMEOUT=ANSWER_WITHIN)
    async with this.open():
        yield this
    await asyncio.to_thread(end_processes_of, this.home)


async def test_every_kind_of_spawn_fault_is_one_clear_state_and_leaves_nothing(
    house: ServerWithoutWeb, tmp_path: Path
) -> None:
    house.define_agent()
    kinds = _define(house, tmp_path)
    assert len(kinds) >= 18
    session = await house.session()
    first = await house.agent(session)
    keeper = psutil.Process(first.pid).parent()
    assert keeper is not None
    await session.end_worker(first.id, "done")
    before = _open_files(), keeper.num_fds()
    for kind, why in kinds.items():
        if why != SILENT:
            await _run(house, session, kind)
    await asyncio.gather(*(_run(house, session, kind) for kind, why in kinds.items() if why == SILENT))
    for kind, why in kinds.items():
        worker = session.snapshot.worker(_id(kind))
        assert worker.state is WorkerState.FAILED, (kind, worker)
        assert why in (worker.error or ""), (kind, worker.error)
        marker = house.sessions.services.children.marker(worker.id, 1)
        assert not list(find_marked(marker)), kind
    async with asyncio.timeout(30):
        while (_open_files(), keeper.num_fds()) != before:
            await asyncio.sleep(0.05)
    assert [child for child in keeper.children(recursive=True) if child.status() == "zombie"] == []
    await house.agent(session)  # and the next one begins


async def _run(house: ServerWithoutWeb, session: Session, kind: str) -> None:
    """Until it has failed and is buried."""
    name, place = _id(kind), str(house.workspace)
    await session.add_worker(
        AddWorker(worker_id=name, type="agent", agent_id=name, role=name, workspace=place)
    )
    await until(session, lambda s: s.worker(name).state is not WorkerState.SPAWNING)
    async with asyncio.timeout(60):
        while session.busy or house.sessions.services.children.get(name, 1) is not None:
            await asyncio.sleep(0.01)


def _open_files() -> Counter[str]:
    """What this process has open, apart from the database, whose readers come and go."""
    found = [os.readlink(fd) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    return Counter(name.partition(":")[0] for name in found if "bullpen.db" not in name)


def _define(house: ServerWithoutWeb, place: Path) -> dict[str, str]:
    """All kinds as agents; what each has to say in the end."""
    for name, text in (("no-interpreter", "#!/no/such/interpreter\n"), ("garbage", "\x7fELF nonsense")):
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    for kind, (command, _) in COMMANDS.items():
        words = [word.replace("{place}", str(place)) for word in command]
        house.registry.add(_id(kind), {"name": kind, "kind": "acp", "command": words})
    for kind, (script, _) in SCRIPTS.items():
        house.define_agent(_id(kind), script)
    return {kind: why for kind, (_, why) in (COMMANDS | SCRIPTS).items()}


def _id(kind: str) -> str:
    return kind.replace(" ", "-")
