"""A child: one process with its input, its streams and its end, which is told after its last byte."""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial

from . import spawn
from .directories import open_directory, remove_tree
from .input import NumberedInput
from .spool import SpoolWriter
from .stdio import PipeStdio, PtyStdio
from .stream import RETRY, WINDOW, OutputStream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .loop import EventLoop
    from .spawn import SpawnRequest

PTY_RETENTION = 64 << 20
ERR_RETENTION = 1 << 20
ERR_SEGMENT = 256 << 10
SILENCE = 0.01  # seconds without output after the exit
LAST_WORDS = 20  # such spells, at most, for processes left behind that go on writing


class Child:
    """Runs until `reap`, drains until its streams have ended, and then has an `exit`."""

    def __init__(
        self,
        order: SpawnRequest,
        stdio: PtyStdio | PipeStdio,
        loop: EventLoop,
        on_exit: Callable[[Child], None],
    ) -> None:
        self.worker = order.worker
        self.run = order.run
        self.nonce = order.nonce
        self.pid = self.started = 0
        self.streams: dict[str, OutputStream] = {}
        self.input = NumberedInput(stdio.input, loop)
        self.exit: dict[str, int | None] | None = None
        self._stdio = stdio
        self._unread = dict(stdio.outputs)  # descriptors that no stream has yet
        self._status: int | None = None
        self._loop = loop
        self._on_exit = on_exit

    @property
    def running(self) -> bool:
        return self._status is None

    @property
    def tty(self) -> str | None:
        return self._stdio.name

    @property
    def ends(self) -> dict[str, int]:
        return {name: stream.spool.end for name, stream in self.streams.items()}

    def add_stream(self, name: str, spool: SpoolWriter, grown: set[OutputStream]) -> None:
        window = WINDOW if self.tty is None and name == "out" else None
        key = (self.worker, self.run, name)
        self.streams[name] = OutputStream(
            key,
            self._stdio.outputs[name],
            spool,
            loop=self._loop,
            grown=grown,
            on_end=self._settle,
            window=window,
            on_terminal=self.tty is not None,
        )
        del self._unread[name]

    def start(self, order: SpawnRequest) -> None:
        self.pid = spawn.start(order, self._stdio.actions())
        self._stdio.started()

    def resize(self, cols: int, rows: int) -> None:
        self.streams["out"].settle()  # what it said until now, it said at the old size
        self._stdio.resize(cols, rows)
        self.streams["out"].spool.resize(cols, rows)

    def signal(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            os.kill(self.pid, number)

    def close_input(self) -> None:
        if self.tty is None:
            self.input.close_after_rest()

    def consumed(self, offset: int) -> None:
        if self.tty is None:
            self.streams["out"].consumed(offset)

    def reap(self, status: int) -> None:
        self._status = status
        self.input.close()
        self._stdio.ended()
        for stream in self.streams.values():
            stream.hung_up = True
        self._settle()
        self._loop.later(SILENCE, partial(self._wind_up, self.ends, LAST_WORDS))

    def close(self) -> None:
        """Let go of everything but the files."""
        for stream in self.streams.values():
            stream.close()
            stream.spool.close()
        for fd in self._unread.values():
            os.close(fd)
        self._unread.clear()
        self.input.close()

    def describe(self) -> dict[str, Any]:
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

    def _settle(self) -> None:
        """The exit is told when the process has been reaped and its last byte is in the spool."""
        if self._status is None or not all(stream.ended for stream in self.streams.values()):
            return
        code = os.waitstatus_to_exitcode(self._status)
        self.exit = {"code": None, "signal": -code} if code < 0 else {"code": code, "signal": None}
        self._on_exit(self)

    def _wind_up(self, ends_before: dict[str, int], spells: int) -> None:
        """Do not wait for ever for processes left behind that hold the streams open."""
        still_open = [stream for stream in self.streams.values() if not stream.ended]
        if not still_open:
            return
        if any(stream.blocked for stream in still_open):
            self._loop.later(RETRY, partial(self._wind_up, self.ends, LAST_WORDS))
        elif spells == 0 or self.ends == ends_before:
            for stream in still_open:
                stream.drain()
            self._loop.later(RETRY, partial(self._wind_up, self.ends, 0))  # in case the disk refused
        else:
            self._loop.later(SILENCE, partial(self._wind_up, self.ends, spells - 1))


def start_child(
    order: SpawnRequest,
    spools: int,
    loop: EventLoop,
    grown: set[OutputStream],
    on_exit: Callable[[Child], None],
) -> Child:
    """A new child with new spools, or an OSError and nothing left behind."""
    with ExitStack() as always, ExitStack() as undo:
        worker = open_directory(spools, order.worker)
        always.callback(os.close, worker)
        run = open_directory(worker, str(order.run), fresh=True)
        always.callback(os.close, run)
        undo.callback(remove_tree, str(order.run), worker)
        writers = {}
        for name in ("out",) if order.tty else ("out", "err"):
            writers[name] = _open_spool(name, run, order)
            undo.callback(writers[name].close)
        stdio = PtyStdio(*order.size) if order.tty else PipeStdio()
        undo.callback(stdio.ended)
        undo.callback(stdio.started)
        child = Child(order, stdio, loop, on_exit)
        undo.callback(child.close)
        for name, writer in writers.items():
            child.add_stream(name, writer, grown)
        child.start(order)
        undo.pop_all()
    child.started = spawn.start_time(child.pid)
    return child


def _open_spool(name: str, run: int, order: SpawnRequest) -> SpoolWriter:
    directory = open_directory(run, name, fresh=True)
    if order.tty:
        return SpoolWriter(directory, retention=PTY_RETENTION, size=order.size)
    if name == "err":
        return SpoolWriter(directory, segment=ERR_SEGMENT, retention=ERR_RETENTION)
    return SpoolWriter(directory)
