"""Run a real server in its own process; a test may kill it and start it again."""

import asyncio
import json
import os
import select
import signal
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import websockets
from websockets.asyncio.client import ClientConnection, connect

from bullpen.keeper.marker import MARKER
from bullpen.workers.children import ChildHandles
from support.forks import Process, start_bullpen
from support.internal_errors import find_internal_error
from support.polling import Polling
from support.ports import free_port

TOKEN = "test-token-0123456789"
SECONDS = 60.0  # a deadline for any condition, long enough for a busy machine


class Server:
    """`bullpen serve` with a port and a data directory that stay the same over restarts."""

    def __init__(self, home: Path, workspace: Path, env: dict[str, str] | None = None) -> None:
        self.home = home
        self.workspace = workspace
        self.port = free_port()
        self.token = TOKEN
        self.process: Process | None = None
        self._env = env or {}
        self._expected_mistakes: tuple[str, ...] = ()
        self.http = self.new_client()

    def new_client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {TOKEN}"},
            verify=False,  # plain HTTP: reading the certificates of the system would take time
            timeout=30,
            trust_env=False,
        )

    def set(self, **env: str) -> None:
        """Change the environment of the server from its next start on."""
        self._env |= env

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def environment(self) -> dict[str, str]:
        return os.environ | {
            "BULLPEN_HOME": str(self.home),
            "BULLPEN_PORT": str(self.port),
            "BULLPEN_TOKEN": TOKEN,
            "AGENT_WORKSPACE_ROOT": str(self.workspace),
            "SHELL": "/bin/bash",
            "HOME": str(self.workspace),
            **self._env,
        }

    async def start(
        self,
        *flags: str,
        wait: bool = True,
        prefix: tuple[str, ...] = (),
        descriptors: int | None = None,
    ) -> None:
        """Start the server; with `wait`, until it is ready. It is forked if no `prefix` command is given.

        A forked one may have at most `descriptors` open files.
        """
        with open(self.home.with_suffix(".out"), "ab") as output, open(os.devnull, "rb") as nothing:
            command = ["serve", "--no-open", *flags]
            streams = (nothing, output, output)
            self.process = start_bullpen(command, self.environment(), streams, prefix, descriptors)
        if wait:
            await self.ready()

    async def ready(self) -> None:
        """Wait until the server is healthy, which means that it has adopted every worker."""
        async with asyncio.timeout(SECONDS):
            while True:
                if self.has_ended():
                    raise AssertionError(f"the server ended: {self.output()[-2000:]}")
                try:
                    if (await self.http.get("/api/health")).status_code == 200:
                        return
                except httpx.TransportError:
                    pass
                await asyncio.sleep(0.02)

    def output(self) -> str:
        return self.home.with_suffix(".out").read_text(errors="replace")

    def audit_lines(self) -> list[dict[str, Any]]:
        log = self.home / "logs" / "audit.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    async def ended(self) -> int:
        """Wait until the server ends by itself; return its exit code."""
        assert self.process is not None
        return await asyncio.to_thread(self.process.wait, SECONDS)

    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    async def kill(self) -> None:
        """Kill the server with SIGKILL: it cannot flush or report anything."""
        if self.process is not None:
            self.process.kill()
            await asyncio.to_thread(self.process.wait)

    async def stop(self) -> int:
        """Stop the server with SIGTERM, as a service manager does; return its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self.process.wait, SECONDS)

    async def restart(self) -> None:
        await self.kill()
        await self.start()

    def expect_mistake(self, text: str) -> None:
        """Accept mistakes in the log that contain this text: the test provokes them."""
        self._expected_mistakes += (text,)

    async def close(self) -> None:
        """End the server and its keepers; fail if one of them logged a mistake the test does not expect."""
        await self.kill()
        await self.http.aclose()
        await asyncio.to_thread(end_processes_of, self.home)
        mistake = find_internal_error(self.output(), self.home, self._expected_mistakes)
        assert mistake is None, f"the server logged a mistake:\n{mistake}"

    # -- requests to the server ----------------------------------------------------------------------

    async def call(self, method: str, path: str, expect: int | None = None, **kwargs: Any) -> Any:
        answer = await self.http.request(method, path, **kwargs)
        if expect is not None:
            assert answer.status_code == expect, f"{answer.status_code}: {answer.text}"
        else:
            assert answer.is_success, f"{answer.status_code}: {answer.text}"
        return answer.json() if answer.content else None

    async def logged_session(self, session_id: str) -> dict[str, Any]:
        """Return a session without what is not in its log: its attention, and programs in the foreground."""
        session: dict[str, Any] = await self.call("GET", f"/api/sessions/{session_id}")
        del session["attention"]
        for worker in session["workers"]:
            del worker["foreground"]
        return session

    async def new_session(self, **body: Any) -> dict[str, Any]:
        body.setdefault("locationPath", str(self.workspace))
        session: dict[str, Any] = await self.call("POST", "/api/sessions", 201, json=body)
        return session

    async def new_terminal(self, session_id: str, **body: Any) -> dict[str, Any]:
        """Add a terminal to a session; return it when it runs."""
        body.setdefault("type", "terminal")
        worker = await self.call("POST", f"/api/sessions/{session_id}/workers", 201, json=body)
        return await self.worker_in(session_id, worker["id"], "active")

    async def worker_in(self, session_id: str, worker_id: str, *states: str) -> dict[str, Any]:
        """Wait until the worker is in one of the states."""
        polling = Polling()
        async with asyncio.timeout(SECONDS):
            while True:
                worker: dict[str, Any] = await self.call(
                    "GET", f"/api/sessions/{session_id}/workers/{worker_id}"
                )
                if worker["state"] in states:
                    return worker
                await polling.pause()

    @asynccontextmanager
    async def socket(self, path: str, **kwargs: Any) -> AsyncIterator[ClientConnection]:
        headers = {"Authorization": f"Bearer {self.token}"} | kwargs.pop("headers", {})
        kwargs.setdefault("max_size", None)
        async with connect(
            f"ws://127.0.0.1:{self.port}{path}", additional_headers=headers, proxy=None, **kwargs
        ) as ws:
            yield ws


def end_processes_of(home: Path) -> None:
    """End the server and the keeper of a data directory, and the programs that the keeper still runs.

    Their control groups, which the next server would remove, are removed too.
    """
    _end(processes_of(home))
    limits, deadline = ChildHandles(home).limits, time.monotonic() + 5
    while not limits.sweep() and time.monotonic() < deadline:
        time.sleep(0.01)  # processes in it are just ending


def processes_of(home: Path) -> list[int]:
    """Return the pids of the server and the keeper of a data directory, and of the keeper's programs."""
    texts = [f"\0{home}\0", f"\0BULLPEN_HOME={home}\0", f"\0{MARKER}={ChildHandles(home).home_id}/"]
    marks = [os.fsencode(text) for text in texts]
    found = []
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        arguments = _read(pid, "cmdline")
        variables = _read(pid, "environ") if arguments else b""  # not of a thread of the kernel
        strings = b"\0%b\0%b\0" % (arguments, variables)
        if any(mark in strings for mark in marks) and pid != os.getpid():
            found.append(pid)
    return found


def _read(pid: int, name: str) -> bytes:
    """Return a file of a process; nothing if it has ended or is another user's."""
    try:
        with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def has_ended(pid: int) -> bool:
    """Return whether a process has ended; without its keeper it may stay a zombie."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _end(pids: list[int]) -> None:
    """Kill processes and wait until they are dead, but not until init reaps them, which may take a second."""
    with ExitStack() as stack:
        ends = []
        for pid in pids:
            with suppress(ProcessLookupError):
                ends.append(os.pidfd_open(pid))
                stack.callback(os.close, ends[-1])
                signal.pidfd_send_signal(ends[-1], signal.SIGKILL)
        for end in ends:
            select.select([end], [], [], 5)


ConnectionClosed = websockets.ConnectionClosed
