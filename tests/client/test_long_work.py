"""The client waits for requests that take long: a worktree with its setup, an upload, a rebuild."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bullpen.client import Client, ConnectionLost
from bullpen.domain.errors import Conflict
from support.intervals import shortened
from support.repositories import Repo

STALL_SECONDS = 0.2  # after which a silent server is given up
RESPONSE_DELAY = 0.6  # seconds
LARGE = bytes(64 << 20)  # more than socket buffers hold for a server that does not read

WORKTREE = {"name": "fix", "path": "/srv/fix"}
SESSION = {"id": "s", "type": "worktree", "title": "fix", "status": "active"}
DIFF: dict[str, object] = {"base": "main", "files": [], "additions": 0, "deletions": 0}
LONG_WORK: dict[str, tuple[Callable[[Client], Awaitable[object]], object]] = {
    "a session in a new worktree": (lambda client: client.create_session(repo_id="r", worktree={}), SESSION),
    "a session on a branch": (lambda client: client.create_session(repo_id="r", branch="fix"), SESSION),
    "a worktree": (lambda client: client.add_worktree("r", branch="fix"), WORKTREE),
    "a removal": (lambda client: client.remove_worktree("r", "fix"), WORKTREE | {"id": "t"}),
    "a restoration": (lambda client: client.restore_worktree("r", "fix"), WORKTREE),
    "an upload": (lambda client: client.import_recording("s", LARGE), {"taken": [], "left": []}),
    "a diff": (lambda client: client.diff("s"), DIFF),
    "a rebuild": (lambda client: client.rebuild_recordings(), {"sessions": 0, "events": 0}),
}
KINDS = pytest.mark.parametrize(("work", "answer"), LONG_WORK.values(), ids=LONG_WORK)


class SlowServer:
    """A server that answers after a delay. For the answer None it closes the connection."""

    def __init__(self, answers: list[object]) -> None:
        self.url = ""
        self.requests: list[bytes] = []
        self._answers = answers

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        answer = self._answers.pop(0)
        await asyncio.sleep(RESPONSE_DELAY)
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
async def slow_server(*answers: object) -> AsyncIterator[SlowServer]:
    slow = SlowServer(list(answers))
    async with (
        asyncio.timeout(60),
        await asyncio.start_server(slow.serve, "127.0.0.1", 0, limit=1 << 20) as listening,
    ):
        slow.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        yield slow


@pytest.fixture(autouse=True)
def short_stall_limit() -> Iterator[None]:
    with shortened(stall=STALL_SECONDS):
        yield


@KINDS
async def test_a_long_request_is_sent_once_and_waited_for(
    work: Callable[[Client], Awaitable[object]], answer: object
) -> None:
    async with slow_server(answer) as slow, Client(slow.url, "any", patience=STALL_SECONDS) as client:
        assert await work(client) is not None
        assert len(slow.requests) == 1


@KINDS
async def test_a_long_request_is_sent_again_after_the_connection_was_closed(
    work: Callable[[Client], Awaitable[object]], answer: object
) -> None:
    async with slow_server(None, answer) as slow, Client(slow.url, "any", patience=STALL_SECONDS) as client:
        assert await work(client) is not None
        keys = [line for head in slow.requests for line in head.splitlines() if b"Idempotency-Key" in line]
        assert (len(slow.requests), len(set(keys)) <= 1) == (2, True)


async def test_a_server_that_is_silent_after_a_short_request_is_given_up() -> None:
    async with slow_server({"repositories": []}) as slow, Client(slow.url, "any", patience=0.01) as client:
        with pytest.raises(ConnectionLost):
            await client.repositories()


async def test_a_setup_that_fails_late_runs_once_and_is_reported(client: Client, workspace: Path) -> None:
    repo, setup_log = Repo(workspace / "site"), workspace / ".npm/setup.log"
    setup_log.parent.mkdir()  # a cache in the home, which the command may write
    registered = await client.add_repository(str(repo.path))
    setup = f"echo once >> {setup_log}; sleep {4 * STALL_SECONDS}; exit 3"
    await client.edit_repository(registered.id, setup=setup)
    with pytest.raises(Conflict, match="setup"):
        await client.create_session(repo_id=registered.id, worktree={"branch": "fix"})
    assert setup_log.read_text() == "once\n"


async def test_the_client_uses_keepalive_while_it_waits_for_a_long_request() -> None:
    async with slow_server(WORKTREE) as slow, Client(slow.url, "any") as client, asyncio.TaskGroup() as tasks:
        tasks.create_task(client.add_worktree("r"))
        while not slow.requests:
            await asyncio.sleep(0.01)
        assert "keepalive" in timers_of(int(slow.url.rpartition(":")[2]))


def timers_of(port: int) -> list[str]:
    """Return the active kernel timer of each connection to a port of this machine."""
    kinds = {"00": "nothing", "01": "an acknowledgement", "02": "keepalive"}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [kinds.get(row[5].partition(":")[0], "other") for row in rows if row[2].endswith(f":{port:04X}")]
