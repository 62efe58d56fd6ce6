"""How much disk space the files of a session take, and when they are measured."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from bullpen.sandbox import disk_usage
from bullpen.sandbox.disk_usage import changed_bytes
from bullpen.sessions.disk_watch import STEPS, DiskGate

MIB = 1 << 20
LIMIT = 160 * MIB


def write(path: Path, size: int = MIB) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.write(os.urandom(size))
        file.flush()
        os.fsync(file.fileno())  # else it may have no blocks yet
    return path


def measure(*directories: Path, since: int = 0, pids: tuple[int, ...] = ()) -> float:
    """Return the measured MiB."""
    return round(changed_bytes(map(str, directories), since, pids) / MIB, 1)


def test_files_in_all_directories_count_once(tmp_path: Path) -> None:
    file = write(tmp_path / "a/deep/file")
    os.link(file, tmp_path / "a/second-name")
    write(tmp_path / "b/file", 2 * MIB)
    (tmp_path / "a/link").symlink_to(tmp_path / "b")
    assert measure(tmp_path / "a") == 1
    assert measure(tmp_path / "a", tmp_path / "b", tmp_path / "a/deep", tmp_path / "gone") == 3


def test_only_what_has_changed_since_then_counts_even_if_its_time_is_set_back(tmp_path: Path) -> None:
    write(tmp_path / "old")
    since = time.time_ns()
    clock = tmp_path / "clock"
    clock.touch()
    while clock.stat().st_ctime_ns <= since:  # the times of files advance in steps
        clock.touch()
    new = write(tmp_path / "new", 2 * MIB)
    os.utime(new, (0, 0))
    assert measure(tmp_path, since=since) == 2


def test_removed_files_count_while_a_program_holds_them_open(tmp_path: Path) -> None:
    with open(write(tmp_path / "removed"), "rb"):
        (tmp_path / "removed").unlink()
        assert measure(tmp_path) == 0
        assert measure(tmp_path, pids=(os.getpid(),)) == 1


def test_the_script_prints_the_bytes(tmp_path: Path) -> None:
    write(tmp_path / "file")
    order = json.dumps({"directories": [str(tmp_path)], "since": 0, "pids": []})
    argv = [sys.executable, "-I", "-S", str(Path(disk_usage.__file__)), order]
    assert int(subprocess.run(argv, capture_output=True, check=True).stdout) >= MIB


def test_files_are_measured_when_the_disk_has_lost_as_much_as_the_session_may_still_write() -> None:
    gate = DiskGate(LIMIT)
    step = LIMIT // STEPS
    assert not gate.must_measure({1: 1000 * MIB})
    assert not gate.must_measure({1: 1000 * MIB - step}), "its size is not known at first"
    assert gate.must_measure({1: 999 * MIB - step})
    assert not gate.is_over(60 * MIB)
    assert not gate.must_measure({1: 899 * MIB - step})
    assert gate.must_measure({1: 898 * MIB - step})


def test_space_that_is_freed_and_written_again_counts() -> None:
    gate = DiskGate(LIMIT)
    free = [1000, 995, 1000, 994]
    assert [gate.must_measure({1: each * MIB}) for each in free] == [False, False, False, True]


def test_each_disk_counts() -> None:
    gate = DiskGate(LIMIT)
    assert not gate.must_measure({1: 100 * MIB, 2: 100 * MIB})
    assert gate.must_measure({1: 90 * MIB, 2: 99 * MIB})


def test_a_session_over_its_limit_may_go_on_as_long_as_it_does_not_grow() -> None:
    gate = DiskGate(LIMIT)
    assert not gate.is_over(LIMIT)
    assert gate.is_over(LIMIT + 2)
    assert not gate.is_over(LIMIT + 1)
    assert gate.is_over(LIMIT + 2)


def test_a_session_that_removed_its_files_is_over_its_limit_again_at_the_same_size() -> None:
    gate = DiskGate(LIMIT)
    assert gate.is_over(2 * LIMIT)
    assert not gate.must_measure({1: 1000 * MIB})
    assert gate.must_measure({1: 1000 * MIB + 2 * LIMIT})
    assert not gate.is_over(0)
    assert gate.must_measure({1: 1000 * MIB})
    assert gate.is_over(2 * LIMIT)
