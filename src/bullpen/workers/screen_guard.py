"""Refuse to emulate a screen whose output has crashed the server twice.

The emulator is native code: a crash there ends the whole server, and the same bytes would do it again at
every start. So each thread writes the screen it uses into a file, which outlives the process, and Python's
fault handler writes that there was a crash and in which thread. The next start reads both. A killed server
leaves no report of the fault handler, so nothing is counted then.
"""

import faulthandler
import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Self

from ..home import write_private

MAX_CRASHES = 1
NOTE_BYTES = 256  # of the note which thread uses which screen
IN_USE = re.compile(rb"(0x[0-9a-f]{16}) (\S+)")
CRASHED_THREAD = re.compile(rb"^Current thread (0x[0-9a-f]+)", re.MULTILINE)


class ScreenGuard:
    """Counts crashes by screen. Its directory has the files `in-use`, `crash` and `crashes.json`."""

    def __init__(self, crashes: dict[str, int], notes: int) -> None:
        self._crashes = crashes
        self._notes = notes
        self._lock = threading.Lock()
        self._free: list[int] = []
        self._used = 0

    @classmethod
    @contextmanager
    def open(cls, directory: Path) -> Iterator[Self]:
        """Count the crash of the last server, if there was one, and record a crash of this one."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        notes, report = directory / "in-use", directory / "crash"
        crashes = _count(directory / "crashes.json", _suspects(notes, report))
        with report.open("w") as fault, notes.open("wb", buffering=0) as file:
            faulthandler.enable(fault)
            try:
                yield cls(crashes, file.fileno())
            finally:
                faulthandler.disable()
        for path in (notes, report):
            path.unlink(missing_ok=True)

    def allows(self, name: str) -> bool:
        """Return whether this screen may be emulated."""
        return self._crashes.get(name, 0) <= MAX_CRASHES

    def guarding(self, name: str) -> Callable[[], AbstractContextManager[None]]:
        """Return a function that returns a context in which the screen may use the library.

        Within the context, the file of notes names the screen, so that a crash counts against it.
        """

        @contextmanager
        def guard() -> Iterator[None]:
            slot = self._take_slot()
            note = f"{threading.get_ident():#018x} {name}".encode()
            os.pwrite(self._notes, note[:NOTE_BYTES].ljust(NOTE_BYTES), slot * NOTE_BYTES)
            try:
                yield
            finally:
                os.pwrite(self._notes, bytes(NOTE_BYTES), slot * NOTE_BYTES)
                self._free.append(slot)

        return guard

    def _take_slot(self) -> int:
        """Return the number of a free slot in the file of notes."""
        with self._lock:
            if self._free:
                return self._free.pop()
            self._used += 1
            return self._used - 1


def _suspects(notes: Path, report: Path) -> list[str]:
    """Return the screen that the crashed thread used, or all screens in use if that thread used none."""
    crash = report.read_bytes() if report.exists() else b""
    if not crash or not notes.exists():
        return []
    report.replace(report.with_name("last-crash"))
    in_use = IN_USE.findall(notes.read_bytes())
    thread = CRASHED_THREAD.search(crash)
    of_thread = [name for user, name in in_use if thread and user == thread[1]]
    return [name.decode() for name in of_thread or [name for _user, name in in_use]]


def _count(path: Path, names: list[str]) -> dict[str, int]:
    """Add a crash of each of these screens to the stored counts, and return the counts."""
    crashes = _read(path)
    for name in names:
        crashes[name] = crashes.get(name, 0) + 1
    if names:
        write_private(path, json.dumps(crashes))
    return crashes


def _read(path: Path) -> dict[str, int]:
    """Return the stored counts of crashes by screen."""
    try:
        return {str(name): int(count) for name, count in json.loads(path.read_text()).items()}
    except (FileNotFoundError, ValueError):  # cut off when the machine went down
        return {}
