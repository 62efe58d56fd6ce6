"""EMFILE, ENFILE, ENOMEM and EIO at system calls of the server and the keeper.

A terminal is opened, typed into and ended; an agent does one turn. In each round one call fails. Afterwards,
in the same processes, the state is correct, the failure was reported, and a new session works.

Not injected, because the kernel does not fail there and a library aborts when it does: waiting for events
(epoll_wait), libuv's own wake-up descriptor (read, write and epoll_ctl of the server), memory, and locks
(fcntl of the server, with which SQLite releases them).
`close` is not injected, because a call that strace answers leaves the descriptor open.
"""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import psutil

from support.retrying_client import RetryingClient, define_scripted
from support.scripted_agent.journal import prompts_in
from support.server import Server
from support.strace import FULL, failing_at
from support.terminal_viewer import TerminalViewer, TerminalWriter

ERRORS = ("EMFILE", "ENFILE", "ENOMEM", "EIO")
SECONDS = 60.0
SAMPLE_SIZE = 8  # rounds of each test in a normal run
MAX_CALLS = 2000  # of one kind in a round; more are an error of the test
# Texts by which the kernel, SQLite and Bullpen report a failure.
FAILURE_TEXTS = (
    "too many open files",
    "out of memory",
    "cannot allocate memory",
    "input/output error",
    "i/o error",
    "unable to open",
    "database cannot be",
    "no resources left",
)

# The least number of each call in a round.
FILES = {"openat": 20, "newfstatat": 20, "getdents64": 2, "lseek": 20, "mkdir": 1, "rename": 1}
SERVER = {**FILES, "pread64": 10, "pwrite64": 20, "fdatasync": 2, "writev": 2, "ioctl": 10}
SERVER |= {"accept4": 1, "setsockopt": 1}
SERVER_AGENT = {**SERVER, "openat2": 1, "fchmod": 1, "renameat": 1, "unlinkat": 1, "ftruncate": 1}
KEEPER = {"openat": 5, "mkdirat": 3, "read": 4, "write": 4, "sendto": 5, "recvfrom": 5, "newfstatat": 3}
KEEPER |= {"ioctl": 5, "fcntl": 3, "epoll_ctl": 2, "chdir": 2, "prlimit64": 3, "kill": 2, "wait4": 1}
KEEPER |= {"clone3": 1, "lseek": 1}
KEEPER_AGENT = {**KEEPER, "pipe2": 3}

Point = tuple[str, int, str]
Round = Callable[[], Awaitable[None]]


async def test_a_failing_system_call_of_the_server_is_reported_and_a_terminal_still_works(
    server: Server,
) -> None:
    await _fail_each(server, server.pid, SERVER, lambda: _use_terminal(server))


async def test_a_failing_system_call_of_the_keeper_is_reported_and_a_terminal_still_works(
    server: Server,
) -> None:
    keeper = await _keeper_of(server)
    async with _no_descriptor_left(keeper):
        await _fail_each(server, keeper, KEEPER, lambda: _use_terminal(server))


async def test_a_failing_system_call_of_the_server_is_reported_and_an_agent_still_works(
    server: Server, workspace: Path
) -> None:
    await _fail_each(server, server.pid, SERVER_AGENT, _AgentRounds(server, workspace).run_turn)


async def test_a_failing_system_call_of_the_keeper_is_reported_and_an_agent_still_works(
    server: Server, workspace: Path
) -> None:
    keeper = await _keeper_of(server)
    async with _no_descriptor_left(keeper):
        await _fail_each(server, keeper, KEEPER_AGENT, _AgentRounds(server, workspace).run_turn)


async def _fail_each(server: Server, pid: int, least_calls: dict[str, int], one_round: Round) -> None:
    """Run a round for each point. After each one, check that the same processes serve a new session."""
    hits, reached = 0, True
    points = _all_points(least_calls, lambda: reached) if FULL else _sample_points(least_calls)
    for call, number, error in points:
        with _error_note(call, number, error, server):
            async with failing_at(pid, str(number), error, call, children=pid == server.pid) as injected:
                async with asyncio.timeout(SECONDS):
                    await one_round()
                reached = injected.count() > 0
            hits += reached
            async with asyncio.timeout(SECONDS):
                await _use_new_session(server)
            assert psutil.pid_exists(pid)
    assert hits, "no call failed, so nothing was tested"


def _sample_points(least_calls: dict[str, int]) -> Iterator[Point]:
    """Return a random sample of calls, numbers and errors."""
    calls = random.sample(sorted(least_calls), min(SAMPLE_SIZE, len(least_calls)))
    return ((call, random.randint(1, least_calls[call]), random.choice(ERRORS)) for call in calls)


def _all_points(least_calls: dict[str, int], reached: Callable[[], bool]) -> Iterator[Point]:
    """Yield every number of every call with every error, until a round makes fewer calls."""
    for call in least_calls:
        for error in ERRORS:
            for number in count(1):
                assert number < MAX_CALLS, f"more than {MAX_CALLS} calls of {call} in a round"
                yield call, number, error
                if not reached():
                    break


@contextmanager
def _error_note(call: str, number: int, error: str, server: Server) -> Iterator[None]:
    try:
        yield
    except BaseException as cause:
        cause.add_note(f"{error} at call {number} of {call}\n{server.output()[-3000:]}")
        raise


async def _keeper_of(server: Server) -> int:
    session = await server.new_session()
    terminal = await server.new_terminal(session["id"])
    return int(psutil.Process(terminal["pid"]).ppid())


@asynccontextmanager
async def _no_descriptor_left(keeper: int) -> AsyncIterator[None]:
    """Wait until the keeper has no more descriptors open than before: it closes them after an exit."""
    process = psutil.Process(keeper)
    before = process.num_fds()
    yield
    async with asyncio.timeout(SECONDS):
        while process.num_fds() > before:
            await asyncio.sleep(0.02)


async def _use_new_session(server: Server) -> None:
    # If the last write of the round has failed, new orders are refused until the server has tried again.
    session = await _request(server, "POST", "/api/sessions", json={"locationPath": str(server.workspace)})
    terminal = await server.new_terminal(session["id"])
    await server.call("DELETE", f"/api/sessions/{session['id']}/workers/{terminal['id']}")
    assert not psutil.pid_exists(terminal["pid"])


async def _use_terminal(server: Server) -> None:
    """Open a terminal, type into it, and end it. Repeat each failed request; check that it acts only once."""
    session = await _request(server, "POST", "/api/sessions", json={"locationPath": str(server.workspace)})
    path = f"/api/sessions/{session['id']}/workers"
    worker = await _request(server, "POST", path, json={"type": "terminal"})
    worker = await _started(server, f"{path}/{worker['id']}")
    writer = TerminalWriter(server, session["id"], worker["id"], "writer")
    viewer = TerminalViewer(server, session["id"], worker["id"])
    async with viewer.watching():
        await writer.type("stty -echo; PS1=\n", "echo bul''lpen\n")
        await viewer.until_seen(b"bullpen\r\n")
    assert bytes(viewer.data).count(b"bullpen\r\n") == 1
    now = await _request(server, "GET", f"{path}/{worker['id']}")
    assert (now["state"], now["pid"]) == ("active", worker["pid"])
    ended = await _request(server, "DELETE", f"{path}/{worker['id']}")
    assert ended["state"] == "terminated"
    assert not psutil.pid_exists(worker["pid"])
    log = (await _request(server, "GET", f"/api/sessions/{session['id']}/events"))["events"]
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    kinds = [event["type"] for event in log]
    assert kinds.count("worker_spawning") == 1 + kinds.count("worker_failed")


class _AgentRounds:
    """Rounds with an agent, each with a journal of its own."""

    def __init__(self, server: Server, workspace: Path) -> None:
        self._server = server
        self._workspace = workspace
        self._number = 0

    async def run_turn(self) -> None:
        """Start an agent, prompt it, wait for the end of the turn, and check that nothing was done twice."""
        self._number += 1
        server, agent_id = self._server, f"agent-{self._number}"
        journal = define_scripted(self._workspace, agent_id=agent_id)
        body = {"locationPath": str(server.workspace)}
        session = await _request(server, "POST", "/api/sessions", json=body)
        path = f"/api/sessions/{session['id']}/workers"
        worker = await _request(server, "POST", path, json={"type": "agent", "agentId": agent_id})
        await _started(server, f"{path}/{worker['id']}")
        client = RetryingClient(server, session["id"])
        text = "[[stream n=5]] [[tool title=y]] [[chunk end]]"
        prompt = {"text": text, "promptId": str(uuid.uuid4())}
        async with client.following():
            await _request(server, "POST", f"{client.path}/prompt", json=prompt)
            await client.until_turns(1)
        assert prompts_in(journal) == [text]
        assert client.agent_text() == "<0><1><2><3><4>end"
        assert len(client.events_of_type("user_prompt")) == 1
        await _request(server, "DELETE", client.path)


async def _request(server: Server, method: str, path: str, **more: Any) -> Any:
    """Repeat a request with the same idempotency key until it succeeds; each failure must name its cause."""
    headers = {"Idempotency-Key": str(uuid.uuid4())} if method == "POST" else {}
    while True:
        try:
            answer = await server.http.request(method, path, headers=headers, **more)
        except httpx.TransportError:
            await asyncio.sleep(0.02)
            continue
        if answer.is_success:
            return answer.json() if answer.content else None
        assert answer.status_code in (503, 507), f"{answer.status_code}: {answer.text}"
        _check_reported(answer.json()["message"])
        await asyncio.sleep(0.02)


async def _started(server: Server, path: str) -> dict[str, Any]:
    """Wait until the worker runs; if it failed for the injected reason, restart it."""
    while True:
        worker: dict[str, Any] = await _request(server, "GET", path)
        if worker["state"] == "active":
            return worker
        if worker["state"] == "failed":
            _check_reported(worker["error"])
            await _request(server, "POST", f"{path}/restart")
        await asyncio.sleep(0.02)


def _check_reported(message: str) -> None:
    assert any(text in message.lower() for text in FAILURE_TEXTS), message
