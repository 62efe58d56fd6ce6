"""One child process from its start to its end: bounded in time and output, and never left behind."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from .. import clock

CHUNK = 1 << 16
ERRORS_KEPT = 1 << 14
GRACE_SECONDS = 2.0
GONE_SECONDS = 10.0
LOOK_SECONDS = 0.05
_MARKER = "BULLPEN_ERRAND"
_UMASK = 'umask "$0"; exec "$@"'  # uvloop takes no umask, and ours is the one of private files


class ProcessResult(Struct, frozen=True, kw_only=True):
    """What became of a process; `cut` when it said more than was wanted and was ended for that."""

    code: int
    output: bytes
    errors: str
    cut: bool = False


class _OutputTooLong(Exception):
    """It said more than was wanted."""


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
    """Runs a program in a process group of its own and gives back what it said.

    Raises TimeoutError and OSError. Whatever the way out, cancellation included, the whole group is gone
    afterwards.
    """
    process = await _whole(
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
                _end_group(process)
            await process.wait()
    finally:
        _end_group(process)
        await asyncio.shield(process.wait())
    return ProcessResult(code=process.returncode or 0, output=output.bytes(), errors=errors.text(), cut=cut)


async def _whole(start: Coroutine[Any, Any, asyncio.subprocess.Process]) -> asyncio.subprocess.Process:
    """A start that is cancelled in its middle would end the process alone, not what it has started."""
    starting = asyncio.ensure_future(start)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_end_started)  # also when we are not let wait for it
        with suppress(OSError):
            await (await asyncio.shield(starting)).wait()
        raise


def _end_started(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        _end_group(starting.result())


def marked(marker: str | None) -> dict[str, str]:
    """What a process carries in its environment so that a later server can find it."""
    return {_MARKER: marker} if marker else {}


async def end_marked(marker: str) -> None:
    """Ends what a killed server left running for an errand, and waits until it is gone.

    Not at once: a git that is about to end by itself leaves no lock behind.
    """
    begun = clock.monotonic()
    while pids := await asyncio.to_thread(_find_marked, f"{_MARKER}={marker}".encode()):
        waited = clock.monotonic() - begun
        for pid in pids if waited > GRACE_SECONDS else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if waited > GRACE_SECONDS + GONE_SECONDS:
            raise TimeoutError(f"the processes {pids} do not end")
        await asyncio.sleep(LOOK_SECONDS)


def _find_marked(variable: bytes) -> list[int]:
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:  # not ours, or just ended
            if variable in file.read().split(b"\0"):
                found.append(int(pid))
    return found


class _BoundedOutput:
    """Bytes up to a limit; one more is an _Excess."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def take(self, data: bytes) -> None:
        kept = data[: self._limit - self._size]
        self._parts.append(kept)
        self._size += len(kept)
        if len(kept) < len(data):
            raise _OutputTooLong

    def bytes(self) -> bytes:
        return b"".join(self._parts)


class _StderrLines:
    """What is said on stderr: whole lines told as they come, the last ones kept."""

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        self._on_line = on_line
        self._open = b""
        self._kept = b""

    def take(self, data: bytes) -> None:
        *whole, rest = (self._open + data).replace(b"\r", b"\n").split(b"\n")
        self._open = rest[-ERRORS_KEPT:]
        for line in whole:
            self._note(line)

    def text(self) -> str:
        self._note(self._open)
        self._open = b""
        return self._kept.decode("utf-8", "replace").strip()

    def _note(self, line: bytes) -> None:
        if not line.strip():
            return
        self._kept = (self._kept + line + b"\n")[-ERRORS_KEPT:]
        if self._on_line:
            self._on_line(line.decode("utf-8", "replace").strip())


async def _feed(stream: asyncio.StreamWriter | None, data: bytes) -> None:
    if stream is None:
        return
    with suppress(
        BrokenPipeError, ConnectionResetError, RuntimeError
    ):  # it needed no more; uvloop's is the last
        stream.write(data)
        await stream.drain()
        stream.close()
        await stream.wait_closed()


async def _drain(stream: asyncio.StreamReader | None, take: Callable[[bytes], None]) -> None:
    assert stream is not None
    while data := await stream.read(CHUNK):
        take(data)


def _end_group(process: asyncio.subprocess.Process) -> None:
    """Ends what is left of the group, grandchildren that outlived the process included."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
