"""Control groups: where they can be made, and what the kernel and the server do with them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bullpen.domain.limits import ResourceLimits
from bullpen.sandbox.cgroups import SHARES, ControlGroups, GroupBase, RunGroup, find_bases
from bullpen.sandbox.limit_launcher import NICENESS
from support.limited_server import HAS_GROUPS, OFFENDER

LIMITS = ResourceLimits(memory=64 << 20, processes=60)
JOIN = 'while [ "$1" != -- ]; do echo 0 >"$1"; shift; done; shift; exec "$@"'

SYSTEMD = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
HYBRID = """32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw"""
UNIT = "/user.slice/user-1000.slice/user@1000.service/app.slice/bullpen.service"


def bases(mounts: str, own: str) -> list[tuple[int, dict[str, str]]]:
    return [
        (base.version, {name: str(path) for name, path in base.directories.items()})
        for base in find_bases(mounts, own)
    ]


def test_groups_of_v2_lie_beside_the_group_of_the_server() -> None:
    top = "/sys/fs/cgroup" + UNIT
    assert bases(SYSTEMD, f"0::{UNIT}/server\n") == [(2, dict.fromkeys(("memory", "pids", "cpu"), top))]


def test_groups_of_v2_lie_in_the_root_group_if_the_server_is_there() -> None:
    assert bases(SYSTEMD, "0::/\n") == [(2, dict.fromkeys(("memory", "pids", "cpu"), "/sys/fs/cgroup"))]


def test_groups_of_v1_lie_in_the_group_of_the_server_in_each_hierarchy() -> None:
    own = "8:pids:/\n4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n0::/\n"
    of_v1 = {
        "memory": "/sys/fs/cgroup/memory/docker/abc",
        "pids": "/sys/fs/cgroup/pids",
        "cpu": "/sys/fs/cgroup/cpu,cpuacct/docker/abc",
    }
    assert bases(HYBRID, own)[1] == (1, of_v1)


def test_a_mount_that_shows_a_part_of_the_groups_is_understood() -> None:
    mounts = "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw"
    assert bases(mounts, "0::/docker/abc/bullpen\n")[0][1]["pids"] == "/sys/fs/cgroup"
    assert bases(mounts, "0::/other\n") == []


def test_a_machine_without_groups_has_no_place_for_them(tmp_path: Path) -> None:
    assert bases("22 1 8:1 / / rw - ext4 /dev/sda1 rw", "0::/\n") == []
    assert not ControlGroups(GroupBase(1, {"memory": tmp_path, "pids": tmp_path}), "none").can_limit()


@pytest.fixture
def v2(tmp_path: Path) -> ControlGroups:
    """Return groups in a directory whose files look like those of cgroup v2."""
    for path in (tmp_path, tmp_path / "bullpen"):
        path.mkdir(exist_ok=True)
        (path / "cgroup.subtree_control").write_text("memory pids")
        (path / "cgroup.procs").touch()
    (tmp_path / "bullpen/cpu.weight.nice").write_text("0")
    return ControlGroups(GroupBase(2, dict.fromkeys(("memory", "pids", "cpu"), tmp_path)), "bullpen")


def begin_v2(groups: ControlGroups, top: Path) -> tuple[RunGroup, Path]:
    """Make the group of a run, with the files that the kernel would make."""
    session, run = top / "bullpen/session", top / "bullpen/session/worker.1"
    run.mkdir(parents=True)
    (session / "cgroup.subtree_control").write_text("")
    for name in ("pids.max", "memory.max", "memory.swap.max"):
        (session / name).touch()
    (run / "memory.oom.group").write_text("0")
    return groups.begin("session", "worker.1", LIMITS), run


def test_in_v2_a_session_gets_its_limits_and_a_run_ends_as_a_whole(v2: ControlGroups, tmp_path: Path) -> None:
    group, run = begin_v2(v2, tmp_path)
    assert {
        name: (run.parent / name).read_text() for name in ("pids.max", "memory.max", "memory.swap.max")
    } == {
        "pids.max": "60",
        "memory.max": str(LIMITS.memory),
        "memory.swap.max": str(LIMITS.memory),
    }
    assert (tmp_path / "bullpen/cpu.weight.nice").read_text() == str(NICENESS)
    assert (run / "memory.oom.group").read_text() == "1"
    assert group.process_files == [run / "cgroup.procs"]


def test_in_v2_memory_counts_with_its_swap(v2: ControlGroups, tmp_path: Path) -> None:
    group, run = begin_v2(v2, tmp_path)
    (run / "memory.stat").write_text("anon 700\nfile 9000\nshmem 20\n")
    (run / "memory.swap.current").write_text("0\n")
    assert group.usage().memory == 0, "the kernel limits it"
    (run / "memory.swap.current").write_text("3000\n")
    assert group.usage().memory == 3720
    (run / "memory.events").write_text("low 0\noom 0\noom_kill 1\n")
    assert (group.usage().is_killed, group.usage().is_full) == (True, False)
    (run.parent / "memory.events").write_text("low 0\noom 2\noom_kill 1\n")
    assert group.usage().is_full


if HAS_GROUPS:

    @pytest.fixture
    def groups() -> ControlGroups:
        found = ControlGroups.find(f"bullpen-test-{os.getpid()}")
        assert found is not None
        return found

    def start(group: RunGroup, what: str) -> "subprocess.Popen[bytes]":
        files = map(str, group.process_files)
        argv = ["sh", "-c", JOIN, "sh", *files, "--", sys.executable, str(OFFENDER), what]
        return subprocess.Popen(argv, stderr=subprocess.DEVNULL, start_new_session=True)

    def test_all_runs_together_have_the_low_priority_of_a_run(groups: ControlGroups) -> None:
        group = groups.begin("session", "one.1", LIMITS)
        weights = {"cpu.shares": SHARES, "cpu.weight.nice": NICENESS}  # of v1 and of v2
        files = [path.parents[2] / name for path in group.process_files for name in weights]
        assert all(int(file.read_text()) == weights[file.name] for file in files if file.exists())
        assert groups.remove(group)

    def test_the_kernel_ends_what_uses_too_much_memory(groups: ControlGroups) -> None:
        group = groups.begin("session", "hog.1", LIMITS)
        other = groups.begin("session", "other.1", LIMITS)
        assert start(group, "memory").wait() == -9
        assert (group.usage().is_killed, group.usage().is_full) == (True, True)
        assert not other.usage().is_killed
        assert groups.remove(group) and groups.remove(other)

    def test_the_processes_of_a_session_are_limited_together_and_a_run_is_ended(
        groups: ControlGroups,
    ) -> None:
        group = groups.begin("session", "bomb.1", LIMITS)
        started = start(group, "processes")
        while not (usage := group.usage()).is_refused:
            assert usage.processes <= LIMITS.processes
        assert not groups.remove(group), "it is not empty"
        group.end()
        assert (group.pids, started.wait()) == ([], -9)
        found = groups.find_run("bomb.1")
        assert found is not None and found.process_files == group.process_files
        assert groups.remove(group)
        assert groups.find_run("bomb.1") is None

    def test_empty_groups_of_a_killed_server_are_removed_by_the_next_one(groups: ControlGroups) -> None:
        group = groups.begin("session", "worker.1", LIMITS)
        assert all(file.exists() for file in group.process_files)
        groups.sweep()
        assert not any(file.parents[2].exists() for file in group.process_files)
