"""A client in its own process that keeps one terminal printing while another terminal is measured."""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_bool, c_int64
from multiprocessing.sharedctypes import RawValue
from typing import Any

from harness.shells import start_flood
from systems import System, Terminal

MIN_BYTES = 4_000_000  # received before the measurement starts
TIMEOUT = 60.0


class Flood:
    """The bytes received so far and the request to end, shared by both processes without a lock."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._received: Any = RawValue(c_int64, 0)
        self._end_requested: Any = RawValue(c_bool, False)

    @property
    def received(self) -> int:
        return int(self._received.value)

    def end(self) -> None:
        self._end_requested.value = True

    def run(self) -> None:
        start_flood(self.terminal, "plain", blocks=0)
        self.terminal.type(b"g")
        while not self._end_requested.value:
            self._received.value += len(self.terminal.read())
        self.terminal.close()


@contextmanager
def flooding(system: System) -> Iterator[Flood]:
    flood = Flood(system.open())
    # fork: a socket cannot be pickled; from here on only the forked process uses it
    process = multiprocessing.get_context("fork").Process(target=flood.run)
    process.start()
    try:
        deadline = time.monotonic() + TIMEOUT
        while flood.received < MIN_BYTES:
            if not process.is_alive() or time.monotonic() > deadline:
                raise RuntimeError(f"{system.name}: the flood did not start")
            time.sleep(0.01)
        yield flood
    finally:
        flood.end()
        process.join(TIMEOUT)
        process.kill()
