"""A second client, in its own process, that keeps one terminal flooding while another is measured."""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_bool, c_int64
from multiprocessing.sharedctypes import RawValue
from typing import Any

from harness.shells import start_flood
from systems import System, Terminal

FLOWING = 4_000_000  # bytes delivered before the flood counts as one
PATIENCE = 60.0


class Flood:
    """How much has been delivered so far, and whether to go on; shared by both processes without a lock."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._delivered: Any = RawValue(c_int64, 0)
        self._over: Any = RawValue(c_bool, False)

    @property
    def delivered(self) -> int:
        return int(self._delivered.value)

    def end(self) -> None:
        self._over.value = True

    def run(self) -> None:
        start_flood(self.terminal, "plain", blocks=0)
        self.terminal.type(b"g")
        while not self._over.value:
            self._delivered.value += len(self.terminal.read())
        self.terminal.close()


@contextmanager
def flooding(system: System) -> Iterator[Flood]:
    flood = Flood(system.open())
    # fork: a socket cannot be pickled; from now on only the child uses it
    process = multiprocessing.get_context("fork").Process(target=flood.run)
    process.start()
    try:
        deadline = time.monotonic() + PATIENCE
        while flood.delivered < FLOWING:
            if not process.is_alive() or time.monotonic() > deadline:
                raise RuntimeError(f"{system.name}: no flood")
            time.sleep(0.01)
        yield flood
    finally:
        flood.end()
        process.join(PATIENCE)
        process.kill()
