"""What takes the server long is waited for: a worktree with its commands, an upload, a rebuild."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bullpen.client import Client, ConnectionLost, http
from bullpen.domain.errors import Conflict
from support.repositories import Repo

SILENCE = 0.2  # seconds after which a server is given up
LATE = 0.6
LARGE = bytes(64 << 20)  # more than fits on the way to one who does not read

WORKTREE = {"name": "fix", "path": "/srv/fix"}
SESSION = {"id": "s", "type": "worktree", "title": "fix", "status": "active"}
DIFF: dict[str, object] = {"base": "main", "files": [], "additions": 0, "deletions": 0}
LONG_WORK: dict[str, tuple[Callable[[Client], Awaitable[object]], object]] = {
    "a session in a new worktree": (lambda it: it.create_session(repo_id="r", worktree={}), SESSION),
    "a session on a branch": (lambda it: it.create_session(repo_id="r", branch="fix"), SESSION),
    "a worktree": (lambda it: it.add_worktree("r", branch="fix"), WORKTREE),
    "a removal": (lambda it: it.remove_worktree("r", "fix"), WORKTREE | {"id": "t"}),
    "a restoration": (lambda it: it.restore_worktree("r", "fix"), WORKTREE),
    "an upload": (lambda it: it.import_recording("s", LARGE), {"taken": [], "left": []}),
    "a diff": (lambda it: it.diff("s"), DIFF),
    "a rebuild": (lambda it: it.rebuild_recordings(), {"sessions": 0, "events": 0}),
}
KINDS = pytest.mark.parametrize(("work", "told"), LONG_WORK.values(), ids=LONG_WORK)


class Late:
    """A server that takes its time with every request, and cuts the connection where it has no answer."""

    def __init__(self, answers: list[object]) -> None:
        self.url = ""
        self.requests: list[bytes] = []
        self._answers = answers

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        answer = self._answers.pop(0)
        await asyncio.sleep(LATE)
        if answer is not None:
            await _read_body(reader, self.requests[-1])
            body = json.dumps(answer).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
            writer.write(body)
        writer.close()


async def _read_body(reader: asyncio.StreamReader, head: bytes) -> None:
    for line in head.lower().splitlines():
        if line.startswith(b"content-length:"):
            await reader.readexactly(int(line.partition(b":")[2]))


@asynccontextmanager
async def late(*answers: object) -> AsyncIterator[Late]:
    other = Late(list(answers))
    async with (
        asyncio.timeout(60),
        await asyncio.start_server(other.serve, "127.0.0.1", 0, limit=1 << 20) as listening,
    ):
        other.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        yield other


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_STALL_SECONDS", SILENCE)


@KINDS
async def test_long_work_is_asked_for_once_and_waited_for(
    work: Callable[[Client], Awaitable[object]], told: object
) -> None:
    async with late(told) as other, Client(other.url, "any", patience=SILENCE) as client:
        assert await work(client) is not None
        assert len(other.requests) == 1


@KINDS
async def test_a_server_that_restarts_after_long_work_is_asked_again(
    work: Callable[[Client], Awaitable[object]], told: object
) -> None:
    async with late(None, told) as other, Client(other.url, "any", patience=SILENCE) as client:
        assert await work(client) is not None
        keys = [line for head in other.requests for line in head.splitlines() if b"Idempotency-Key" in line]
        assert (len(other.requests), len(set(keys)) <= 1) == (2, True)


async def test_a_server_that_is_silent_about_little_work_is_given_up() -> None:
    async with late({"repositories": []}) as other, Client(other.url, "any", patience=0.01) as client:
        with pytest.raises(ConnectionLost):
            await client.repositories()


async def test_a_setup_that_fails_late_is_run_once_and_told(client: Client, workspace: Path) -> None:
    repo, ran = Repo(workspace / "site"), workspace / "ran"
    registered = await client.add_repository(str(repo.path))
    setup = f"echo once >> {ran}; sleep {4 * SILENCE}; exit 3"
    await client.edit_repository(registered.id, setup=setup)
    with pytest.raises(Conflict, match="setup"):
        await client.create_session(repo_id=registered.id, worktree={"branch": "fix"})
    assert ran.read_text() == "once\n"


async def test_a_server_that_is_gone_is_noticed_while_it_is_waited_for() -> None:
    async with late(WORKTREE) as other, Client(other.url, "any") as client, asyncio.TaskGroup() as tasks:
        tasks.create_task(client.add_worktree("r"))
        while not other.requests:
            await asyncio.sleep(0.01)
        assert "keepalive" in timers_of(int(other.url.rpartition(":")[2]))


def timers_of(port: int) -> list[str]:
    """What the system waits for with connections to a port of this machine."""
    kinds = {"00": "nothing", "01": "an acknowledgement", "02": "keepalive"}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [kinds.get(row[5].partition(":")[0], "other") for row in rows if row[2].endswith(f":{port:04X}")]
