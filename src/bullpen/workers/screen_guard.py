"""Which screens must not be fed any more, because feeding them has crashed the server twice.

The emulator is native code: a crash there ends the whole server, and the same bytes would do it again at
every start. So each thread writes the screen it uses into a file, which outlives the process, and Python's
fault handler writes that there was a crash and in which thread. The next start reads both. A killed server
leaves no word of the fault handler, so nothing is counted then.
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

CRASHES_ALLOWED = 1
NOTE = 256  # bytes: which thread uses which screen
IN_USE = re.compile(rb"(0x[0-9a-f]{16}) (\S+)")
CRASHED_THREAD = re.compile(rb"^Current thread (0x[0-9a-f]+)", re.MULTILINE)


class ScreenGuard:
    """One for each server; keeps `in-use`, `crash` and `crashes.json` in its directory."""

    def __init__(self, crashes: dict[str, int], notes: int) -> None:
        self._crashes = crashes
        self._notes = notes
        self._lock = threading.Lock()
        self._free: list[int] = []
        self._used = 0

    @classmethod
    @contextmanager
    def open(cls, directory: Path) -> Iterator[Self]:
        """Counts the crash of the last server, if it had one, and watches over this one."""
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
        return self._crashes.get(name, 0) <= CRASHES_ALLOWED

    def watching(self, name: str) -> Callable[[], AbstractContextManager[None]]:
        """What a screen enters while it uses the library."""

        @contextmanager
        def watch() -> Iterator[None]:
            place = self._take_place()
            note = f"{threading.get_ident():#018x} {name}".encode()
            os.pwrite(self._notes, note[:NOTE].ljust(NOTE), place * NOTE)
            try:
                yield
            finally:
                os.pwrite(self._notes, bytes(NOTE), place * NOTE)
                self._free.append(place)

        return watch

    def _take_place(self) -> int:
        with self._lock:
            if self._free:
                return self._free.pop()
            self._used += 1
            return self._used - 1


def _suspects(notes: Path, report: Path) -> list[str]:
    """The screen the crashed thread was using, or every one in use when that thread used none."""
    crash = report.read_bytes() if report.exists() else b""
    if not crash or not notes.exists():
        return []
    report.replace(report.with_name("last-crash"))
    in_use = IN_USE.findall(notes.read_bytes())
    thread = CRASHED_THREAD.search(crash)
    guilty = [name for user, name in in_use if thread and user == thread[1]]
    return [name.decode() for name in guilty or [name for _user, name in in_use]]


def _count(path: Path, names: list[str]) -> dict[str, int]:
    crashes = _read(path)
    for name in names:
        crashes[name] = crashes.get(name, 0) + 1
    if names:
        write_private(path, json.dumps(crashes))
    return crashes


def _read(path: Path) -> dict[str, int]:
    try:
        return {str(name): int(count) for name, count in json.loads(path.read_text()).items()}
    except (FileNotFoundError, ValueError):  # written when the machine went down
        return {}
