"""Run one program to its end, with limits for time and output, and leave no process of its group behind."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO

from msgspec import Struct

READ_BYTES = 1 << 16
MAX_STDERR_BYTES = 1 << 14  # the last ones are kept
UMASK = 0o027  # that of the server is for private files


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
    own_session: bool = True,
) -> ProcessResult:
    """Run a program in a process group of its own, and return its exit code and output.

    With `own_session`, the program cannot open the terminal of the server; without, it starts faster. Raise
    TimeoutError or OSError. In every case, also after a cancellation, the whole group is killed.
    """
    process = _start(argv, env, cwd, stdin, own_session)
    assert process.stdout is not None and process.stderr is not None
    exited = asyncio.ensure_future(_wait_for_exit(process.pid))
    output, errors = _BoundedOutput(limit), _StderrLines(on_line)
    cut = False
    try:
        async with asyncio.timeout(timeout):
            try:
                async with asyncio.TaskGroup() as readers:
                    readers.create_task(_drain(process.stdout, output.take))
                    readers.create_task(_drain(process.stderr, errors.take))
            except* _OutputTooLong:
                cut = True
                _kill_group(process.pid)
            await asyncio.shield(exited)
    finally:
        _kill_group(process.pid)  # no other group has this number until `process.wait` is called
        process.stdout.close()
        process.stderr.close()
        await asyncio.shield(exited)
        process.wait()
    return ProcessResult(code=process.returncode, output=output.bytes(), errors=errors.text(), cut=cut)


def _start(
    argv: Sequence[str], env: Mapping[str, str], cwd: str, stdin: bytes, own_session: bool
) -> subprocess.Popen[bytes]:
    """Start a program in a process group of its own; its input is a file in memory.

    `subprocess` uses vfork and takes 0.2 ms. The event loop would use fork, which copies the page tables of
    the server: the server would stop for 4 ms, and for up to 20 ms while other programs are busy. With vfork
    the server stops until the program runs. In a session of its own that takes 4 to 16 ms while others are
    busy, because the kernel (autogroup) puts the child at the end of another queue.
    """
    with open(os.memfd_create("input"), "w+b") as input_file:
        input_file.write(stdin)
        input_file.seek(0)
        return subprocess.Popen(
            argv,
            stdin=input_file,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
            umask=UMASK,
            start_new_session=own_session,
            process_group=None if own_session else 0,
        )


async def _wait_for_exit(pid: int) -> None:
    """Wait until a child of this process has exited; do not take its exit code."""
    fd = os.pidfd_open(pid)
    try:
        with _readability(fd) as is_readable:
            await is_readable.wait()
    finally:
        os.close(fd)


async def _drain(pipe: IO[bytes], take: Callable[[bytes], None]) -> None:
    """Pass everything that is written to a pipe to `take`."""
    os.set_blocking(pipe.fileno(), False)
    with _readability(pipe.fileno()) as is_readable:
        while data := await _read(pipe.fileno(), is_readable):
            take(data)


async def _read(fd: int, is_readable: asyncio.Event) -> bytes:
    """Return the next bytes; none at the end."""
    while True:
        await is_readable.wait()
        is_readable.clear()
        with suppress(BlockingIOError):
            return os.read(fd, READ_BYTES)


@contextmanager
def _readability(fd: int) -> Iterator[asyncio.Event]:
    """Yield an event that is set whenever a file descriptor can be read."""
    loop, is_readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, is_readable.set)
    try:
        yield is_readable
    finally:
        loop.remove_reader(fd)


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


def _kill_group(group: int) -> None:
    """Kill what is left of a process group, also descendants that outlived the process."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
