"""Run one child process: its input, its output streams, and its exit, reported after its last output."""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial

from . import spawn
from .directories import open_directory, remove_tree
from .input import NumberedInput
from .spool import SpoolWriter
from .stdio import PipeStdio, PtyStdio
from .stream import MAX_UNCONSUMED_BYTES, RETRY_SECONDS, OutputStream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .loop import EventLoop
    from .spawn import SpawnRequest

PTY_RETENTION_BYTES = 64 << 20
STDERR_RETENTION_BYTES = 1 << 20
STDERR_SEGMENT_BYTES = 256 << 10
SILENCE_SECONDS = 0.01  # without output after the exit: the streams are closed then
MAX_SILENCE_CHECKS = 20  # for processes left behind that keep writing


class Child:
    """One child. After `reap` its streams are read to their end; then `exit` is set and `on_exit` called."""

    def __init__(
        self,
        request: SpawnRequest,
        stdio: PtyStdio | PipeStdio,
        loop: EventLoop,
        on_exit: Callable[[Child], None],
    ) -> None:
        self.worker = request.worker
        self.run = request.run
        self.nonce = request.nonce
        self.pid = self.started = 0
        self.streams: dict[str, OutputStream] = {}
        self.input = NumberedInput(stdio.input, loop)
        self.exit: dict[str, int | None] | None = None
        self._stdio = stdio
        self._unread = dict(stdio.outputs)  # descriptors that no stream reads yet
        self._status: int | None = None
        self._loop = loop
        self._on_exit = on_exit

    @property
    def running(self) -> bool:
        """Whether the process has not been reaped yet."""
        return self._status is None

    @property
    def tty(self) -> str | None:
        """The path of the terminal, or None for pipes."""
        return self._stdio.name

    @property
    def ends(self) -> dict[str, int]:
        """The length of each output so far."""
        return {name: stream.spool.end for name, stream in self.streams.items()}

    def add_stream(self, name: str, spool: SpoolWriter, grown: set[OutputStream]) -> None:
        """Begin to read one output into a spool; only stdout of a child without terminal has backpressure."""
        window = MAX_UNCONSUMED_BYTES if self.tty is None and name == "out" else None
        key = (self.worker, self.run, name)
        self.streams[name] = OutputStream(
            key,
            self._stdio.outputs[name],
            spool,
            loop=self._loop,
            grown=grown,
            on_end=self._exit_when_complete,
            window=window,
            on_terminal=self.tty is not None,
        )
        del self._unread[name]

    def start(self, request: SpawnRequest) -> None:
        """Start the process; the streams must have been added."""
        self.pid = spawn.start_process(request, self._stdio.file_actions())
        self._stdio.on_started()

    def resize(self, cols: int, rows: int) -> None:
        """Set the size of the terminal, and note it in the index of the spool."""
        self.streams["out"].write_held()  # it was printed at the old size
        self._stdio.resize(cols, rows)
        self.streams["out"].spool.resize(cols, rows)

    def signal(self, number: int) -> None:
        """Send a signal to the child's process group."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            os.kill(self.pid, number)

    def close_input(self) -> None:
        """Close stdin after what is queued for it; do nothing to a terminal."""
        if self.tty is None:
            self.input.close_when_written()

    def consumed(self, offset: int) -> None:
        """Free the stdout below `offset`; do nothing to a terminal."""
        if self.tty is None:
            self.streams["out"].consumed(offset)

    def reap(self, status: int) -> None:
        """Record the exit status (as from `os.waitpid`); report the exit once all output is in the spool."""
        self._status = status
        self.input.close()
        self._stdio.on_ended()
        for stream in self.streams.values():
            stream.hung_up = True
        self._exit_when_complete()
        self._check_silence_later()

    def close(self) -> None:
        """Close all descriptors; the spool files stay."""
        for stream in self.streams.values():
            stream.close()
            stream.spool.close()
        for fd in self._unread.values():
            os.close(fd)
        self._unread.clear()
        self.input.close()

    def describe(self) -> dict[str, Any]:
        """Return what STATUS reports of this child."""
        cols, rows = self._stdio.size
        return {
            "worker": self.worker,
            "run": self.run,
            "nonce": self.nonce,
            "pid": self.pid,
            "started": self.started,
            "tty": self.tty,
            "cols": cols,
            "rows": rows,
            "ends": self.ends,
            "starts": {name: stream.spool.start for name, stream in self.streams.items()},
            "writers": self.input.numbers,
            "exit": self.exit,
        }

    def _exit_when_complete(self) -> None:
        """Report the exit if the process has been reaped and its last output is in the spool."""
        if self._status is None or not all(stream.ended for stream in self.streams.values()):
            return
        code = os.waitstatus_to_exitcode(self._status)
        self.exit = {"code": None, "signal": -code} if code < 0 else {"code": code, "signal": None}
        self._on_exit(self)

    def _check_silence_later(self, checks_left: int = MAX_SILENCE_CHECKS) -> None:
        """Schedule `_close_if_silent`, which compares the ends of the streams with those of now."""
        self._loop.call_later(SILENCE_SECONDS, partial(self._close_if_silent, self.ends, checks_left))

    def _close_if_silent(self, ends_before: dict[str, int], checks_left: int) -> None:
        """Close streams that processes left behind hold open, after a silence or enough checks."""
        still_open = [stream for stream in self.streams.values() if not stream.ended]
        if not still_open:
            return
        if any(stream.blocked for stream in still_open):
            again = partial(self._close_if_silent, self.ends, MAX_SILENCE_CHECKS)
            self._loop.call_later(RETRY_SECONDS, again)
        elif checks_left == 0 or self.ends == ends_before:
            for stream in still_open:
                stream.drain()
            # The disk may have refused the last output.
            self._loop.call_later(RETRY_SECONDS, partial(self._close_if_silent, self.ends, 0))
        else:
            self._check_silence_later(checks_left - 1)


def start_child(
    request: SpawnRequest,
    spools: int,
    loop: EventLoop,
    grown: set[OutputStream],
    on_exit: Callable[[Child], None],
) -> Child:
    """Start a child with new spools. Raise OSError if that fails, with nothing left behind.

    `spools` is a descriptor of the directory of all spools.
    """
    with ExitStack() as always, ExitStack() as undo:
        worker = open_directory(spools, request.worker)
        always.callback(os.close, worker)
        run = open_directory(worker, str(request.run), fresh=True)
        always.callback(os.close, run)
        undo.callback(remove_tree, str(request.run), worker)
        writers = {}
        for name in ("out",) if request.tty else ("out", "err"):
            writers[name] = _open_spool(name, run, request)
            undo.callback(writers[name].close)
        stdio = PtyStdio(*request.size) if request.tty else PipeStdio()
        undo.callback(stdio.on_ended)
        undo.callback(stdio.on_started)
        child = Child(request, stdio, loop, on_exit)
        undo.callback(child.close)
        for name, writer in writers.items():
            child.add_stream(name, writer, grown)
        child.start(request)
        undo.pop_all()
    child.started = spawn.start_time(child.pid)
    return child


def _open_spool(name: str, run: int, request: SpawnRequest) -> SpoolWriter:
    """Return a writer for one stream, in a new directory below the directory `run`."""
    directory = open_directory(run, name, fresh=True)
    if request.tty:
        return SpoolWriter(directory, retention=PTY_RETENTION_BYTES, size=request.size)
    if name == "err":
        return SpoolWriter(directory, segment=STDERR_SEGMENT_BYTES, retention=STDERR_RETENTION_BYTES)
    return SpoolWriter(directory)
