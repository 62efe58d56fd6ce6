"""A crash in the emulator is attributed to the screen in use. Other ends of the server are not."""

import signal
import subprocess
import sys
from pathlib import Path

from bullpen.workers.screen_guard import ScreenGuard

SERVER = """
import ctypes, os, signal, sys, threading
from pathlib import Path
from bullpen.workers.screen_guard import ScreenGuard

def end(how):
    if how == "segfault":
        ctypes.string_at(0)
    if how == "abort":
        ctypes.CDLL(None).abort()
    os.kill(os.getpid(), getattr(signal, how))

def use(name, action):
    with guard.guarding(name)():
        action()

with ScreenGuard.open(Path(sys.argv[1])) as guard:
    busy = threading.Event()
    wait = lambda: (busy.set(), threading.Event().wait())
    threading.Thread(target=use, args=("bystander", wait), daemon=True).start()
    busy.wait()
    use("done-before", lambda: None)
    if sys.argv[3] == "elsewhere":
        end(sys.argv[2])
    use("guilty", lambda: end(sys.argv[2]))
"""


def crash(directory: Path, how: str, where: str = "in the screen") -> int:
    return subprocess.run([sys.executable, "-c", SERVER, directory, how, where], check=False).returncode


def refused(directory: Path) -> set[str]:
    with ScreenGuard.open(directory) as guard:
        return {name for name in ("guilty", "bystander", "done-before") if not guard.allows(name)}


def test_a_screen_is_refused_after_its_second_crash(tmp_path: Path) -> None:
    assert crash(tmp_path, "segfault") == -signal.SIGSEGV
    assert refused(tmp_path) == set()
    assert crash(tmp_path, "abort") == -signal.SIGABRT
    assert refused(tmp_path) == {"guilty"}
    assert refused(tmp_path) == {"guilty"}


def test_a_killed_server_counts_as_no_crash_of_a_screen(tmp_path: Path) -> None:
    for _ in range(3):
        assert crash(tmp_path, "SIGKILL") == -signal.SIGKILL
        assert crash(tmp_path, "SIGTERM") == -signal.SIGTERM
    assert refused(tmp_path) == set()


def test_a_crash_of_a_thread_without_a_screen_counts_for_all_screens_in_use(tmp_path: Path) -> None:
    for _ in range(2):
        assert crash(tmp_path, "segfault", "elsewhere") == -signal.SIGSEGV
    assert refused(tmp_path) == {"bystander"}


def test_the_traceback_of_the_last_crash_is_kept(tmp_path: Path) -> None:
    crash(tmp_path, "segfault")
    refused(tmp_path)
    assert b"Segmentation fault" in (tmp_path / "last-crash").read_bytes()


def test_crash_counts_that_cannot_be_read_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "crashes.json").write_bytes(b"\0\0\0")
    assert refused(tmp_path) == set()


def test_a_server_that_ends_normally_leaves_no_files(tmp_path: Path) -> None:
    with ScreenGuard.open(tmp_path) as guard, guard.guarding("one")(), guard.guarding("two")():
        pass
    assert list(tmp_path.iterdir()) == []
