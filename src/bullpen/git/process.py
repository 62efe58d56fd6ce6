"""Run one process to its end, with limits for time and output, and leave no process of its group behind."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from .. import clock

READ_BYTES = 1 << 16
MAX_STDERR_BYTES = 1 << 14  # the last ones are kept
GRACE_SECONDS = 2.0  # until marked processes are killed
KILL_TIMEOUT_SECONDS = 10.0  # until marked processes must be gone after that
POLL_SECONDS = 0.05
_MARKER = "BULLPEN_ERRAND"
_UMASK = 'umask "$0"; exec "$@"'  # uvloop takes no umask, and that of the server is for private files


class ProcessResult(Struct, frozen=True, kw_only=True):
    """How a process ended and what it printed. `cut`: it was killed because it exceeded the output limit."""

    code: int
    output: bytes
    errors: str
    cut: bool = False


class _OutputTooLong(Exception):
    """A process has printed more than the limit."""


async def run_process(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    timeout: float,
    limit: int,
    stdin: bytes = b"",
    on_line: Callable[[str], None] | None = None,
    umask: str = "027",
) -> ProcessResult:
    """Run a program in a process group of its own, and return its exit code and output.

    Raise TimeoutError or OSError. In every case, also after a cancellation, the whole group is killed.
    """
    process = await _finish_start(
        asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            _UMASK,
            umask,
            *argv,
            stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )
    )
    output, errors = _BoundedOutput(limit), _StderrLines(on_line)
    cut = False
    try:
        async with asyncio.timeout(timeout):
            try:
                async with asyncio.TaskGroup() as readers:
                    readers.create_task(_feed(process.stdin, stdin))
                    readers.create_task(_drain(process.stdout, output.take))
                    readers.create_task(_drain(process.stderr, errors.take))
            except* _OutputTooLong:
                cut = True
                _kill_group(process)
            await process.wait()
    finally:
        _kill_group(process)
        await asyncio.shield(process.wait())
    return ProcessResult(code=process.returncode or 0, output=output.bytes(), errors=errors.text(), cut=cut)


async def _finish_start(start: Coroutine[Any, Any, asyncio.subprocess.Process]) -> asyncio.subprocess.Process:
    """Await the start of a process. If it is cancelled, kill the group of the process once it has started."""
    starting = asyncio.ensure_future(start)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_kill_started)  # also if this task is cancelled again
        with suppress(OSError):
            await (await asyncio.shield(starting)).wait()
        raise


def _kill_started(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    """Kill a process whose start has just ended, unless the start failed."""
    if not starting.cancelled() and starting.exception() is None:
        _kill_group(starting.result())


def marker_variables(marker: str | None) -> dict[str, str]:
    """Return the environment variable by which a later server finds a process with this marker."""
    return {_MARKER: marker} if marker else {}


async def kill_marked(marker: str) -> None:
    """Wait until the marked processes that a killed server left running are gone; kill them after a while.

    No signal is sent at first: a git that ends by itself leaves no lock file behind. Raise TimeoutError if a
    process remains even after that.
    """
    started_at = clock.monotonic()
    while pids := await asyncio.to_thread(_find_marked, f"{_MARKER}={marker}".encode()):
        waited = clock.monotonic() - started_at
        for pid in pids if waited > GRACE_SECONDS else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if waited > GRACE_SECONDS + KILL_TIMEOUT_SECONDS:
            raise TimeoutError(f"the processes {pids} do not end")
        await asyncio.sleep(POLL_SECONDS)


def _find_marked(variable: bytes) -> list[int]:
    """Return the pids of the processes with this environment variable."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # another user's, or just ended
            if variable in file.read().split(b"\0"):
                found.append(int(pid))
    return found


class _BoundedOutput:
    """Collects output up to a limit, and raises _OutputTooLong beyond it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def take(self, data: bytes) -> None:
        """Add output, or raise _OutputTooLong beyond the limit."""
        kept = data[: self._limit - self._size]
        self._parts.append(kept)
        self._size += len(kept)
        if len(kept) < len(data):
            raise _OutputTooLong

    def bytes(self) -> bytes:
        """Return the output collected so far."""
        return b"".join(self._parts)


class _StderrLines:
    """Passes on each line of stderr as it arrives, and keeps the last ones."""

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        self._on_line = on_line
        self._incomplete = b""
        self._kept = b""

    def take(self, data: bytes) -> None:
        """Add output of stderr, and pass on the lines that are complete."""
        *whole, rest = (self._incomplete + data).replace(b"\r", b"\n").split(b"\n")
        self._incomplete = rest[-MAX_STDERR_BYTES:]
        for line in whole:
            self._add_line(line)

    def text(self) -> str:
        """Return the last lines, with an incomplete one."""
        self._add_line(self._incomplete)
        self._incomplete = b""
        return self._kept.decode("utf-8", "replace").strip()

    def _add_line(self, line: bytes) -> None:
        """Keep a line among the last ones, and pass it on; skip it if it is blank."""
        if not line.strip():
            return
        self._kept = (self._kept + line + b"\n")[-MAX_STDERR_BYTES:]
        if self._on_line:
            self._on_line(line.decode("utf-8", "replace").strip())


async def _feed(stream: asyncio.StreamWriter | None, data: bytes) -> None:
    """Write data to the stdin of a process, and close it."""
    if stream is None:
        return
    # The process may end without reading all of it; uvloop raises RuntimeError then.
    with suppress(BrokenPipeError, ConnectionResetError, RuntimeError):
        stream.write(data)
        await stream.drain()
        stream.close()
        await stream.wait_closed()


async def _drain(stream: asyncio.StreamReader | None, take: Callable[[bytes], None]) -> None:
    """Pass all output of a stream to `take`."""
    assert stream is not None
    while data := await stream.read(READ_BYTES):
        take(data)


def _kill_group(process: asyncio.subprocess.Process) -> None:
    """Kill what is left of the process group, also descendants that outlived the process."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
