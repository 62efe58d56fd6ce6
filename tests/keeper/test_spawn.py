"""How a child is started, and that it inherits nothing from its keeper."""

import errno
import os
import resource
import signal
import stat
import sys
from functools import partial
from pathlib import Path

import pytest

from bullpen.keeper.client import KeeperFault
from keeper.harness import KeeperHarness, has_ended, wait_until


async def test_a_child_has_a_controlling_terminal(connected: KeeperHarness) -> None:
    spawned = await connected.spawn(
        "tty; exec 3<>/dev/tty; echo direct >&3; ps -o tty= -p $$; stty size", cols=100, rows=30
    )
    await connected.wait_for_exit()
    lines = connected.output().decode().split("\r\n")
    assert spawned.tty is not None
    assert lines[:4] == [spawned.tty, "direct", spawned.tty.removeprefix("/dev/"), "30 100"]


async def test_job_control_works(connected: KeeperHarness) -> None:
    await connected.spawn(["bash", "--norc", "-i"], env={"PATH": os.environ["PATH"], "PS1": "$ "})
    await connected.wait_for_output(b"$ ")
    keys = [b"sleep 1000\n", b"\x1a", b"fg\n", b"\x03", b"exit 5\n"]
    answers = [b"sleep 1000\r\n", b"Stopped", b"fg\r\nsleep 1000\r\n", b"^C", b"exit 5\r\n"]
    for n, (key, answer) in enumerate(zip(keys, answers, strict=True), 1):
        assert await connected.keeper.write("w", 1, "test", n, key) == n
        await connected.wait_for_output(answer)
        is_expected = partial(_is_sleep_in_foreground, connected, n in (1, 3))
        await wait_until(is_expected, key.decode())
    assert (await connected.wait_for_exit()).code == 5
    assert b"no job control" not in connected.output()


def _is_sleep_in_foreground(harness: KeeperHarness, expected: bool) -> bool:
    """Return whether `sleep` is in the foreground of the terminal, or is not, as expected."""
    [shell] = harness.pids
    try:
        group = int(Path(f"/proc/{shell}/stat").read_text().rpartition(")")[2].split()[5])
        is_sleep = group != shell and Path(f"/proc/{group}/comm").read_text() == "sleep\n"
        return is_sleep == expected
    except (FileNotFoundError, ProcessLookupError):
        return not expected


async def test_a_resize_reaches_the_program_and_the_index(connected: KeeperHarness) -> None:
    await connected.spawn("trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done")
    await connected.wait_for_output(b"ready")
    await connected.keeper.resize("w", 1, 132, 43)
    await connected.wait_for_exit()
    assert connected.output() == b"ready\r\n43 132\r\n"
    sizes = [(offset, *size) for offset, _, *size in connected.reader().index() if any(size)]
    assert sizes == [(0, 80, 24), (7, 132, 43)]


async def test_a_terminal_expects_utf8(connected: KeeperHarness) -> None:
    await connected.spawn("stty -a")
    await connected.wait_for_exit()
    assert b" iutf8" in connected.output()


@pytest.mark.parametrize("tty", [True, False])
async def test_a_child_inherits_no_descriptor(connected: KeeperHarness, tty: bool) -> None:
    await connected.spawn("sleep 1000", "other", tty=True)
    await connected.python("import os; print(*sorted(os.listdir('/proc/self/fd')))", tty=tty)
    await connected.wait_for_exit()
    assert connected.output().split() == [b"0", b"1", b"2", b"3"]  # 3 is the descriptor of the listing


@pytest.mark.parametrize("tty", [True, False])
async def test_a_child_has_all_signals_at_their_defaults(connected: KeeperHarness, tty: bool) -> None:
    await connected.spawn(["cat", "/proc/self/status"], tty=tty)
    await connected.wait_for_exit()
    masks = dict(
        line.split(":\t") for line in connected.output().decode().splitlines() if line.startswith("Sig")
    )
    reserved_by_libc = 1 << 31 | 1 << 32  # no program can change these
    assert [int(masks[name], 16) & ~reserved_by_libc for name in ("SigBlk", "SigIgn", "SigCgt")] == [0, 0, 0]


async def test_a_broken_pipe_ends_a_child(connected: KeeperHarness) -> None:
    await connected.spawn(["bash", "-c", "yes | head -1; echo ${PIPESTATUS[0]}"], tty=False)
    await connected.wait_for_exit()
    assert connected.output() == b"y\n%d\n" % (128 + signal.SIGPIPE)


async def test_the_umask_of_a_child_is_the_default_or_the_requested_one(
    connected: KeeperHarness, tmp_path: Path
) -> None:
    await connected.spawn("touch usual", cwd=str(tmp_path))
    await connected.spawn("touch asked", run=2, cwd=str(tmp_path), umask=0o027)
    await connected.wait_for_exit()
    await connected.wait_for_exit(run=2)
    assert stat.S_IMODE((tmp_path / "usual").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "asked").stat().st_mode) == 0o640
    segment = next((connected.home / "spool/w/2/out").glob("*.bin"))
    assert stat.S_IMODE(segment.stat().st_mode) == 0o600, "the umask of the child was kept by the keeper"


async def test_the_environment_of_a_child_is_exactly_the_given_one(connected: KeeperHarness) -> None:
    await connected.spawn(["env"], env={"PATH": os.environ["PATH"], "NAME": "a b\u00e9", "RAW": "\udcff"})
    await connected.wait_for_exit()
    expected = {b"PATH=" + os.environb[b"PATH"], "NAME=a bé".encode(), b"RAW=\xff"}
    assert set(connected.output().split(b"\r\n")) == expected | {b""}


async def test_a_program_is_found_in_the_childs_own_path(connected: KeeperHarness, tmp_path: Path) -> None:
    program = tmp_path / "own"
    program.write_text("#!/bin/sh\npwd\n")
    program.chmod(0o755)
    await connected.spawn(["own"], env={"PATH": f"/nowhere:{tmp_path}"}, cwd=str(tmp_path))
    assert (await connected.wait_for_exit()).code == 0
    assert connected.output() == f"{tmp_path}\r\n".encode()


async def test_resource_limits_apply_only_to_the_child(connected: KeeperHarness) -> None:
    def limits() -> list[tuple[int, int]]:
        names = (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_CORE)
        return [resource.prlimit(connected.keeper.pid, name) for name in names]

    before = limits()
    await connected.spawn("ulimit -Sn; ulimit -St; ulimit -Sc", limits={"nofile": 77, "cpu": 1, "core": 0})
    await connected.wait_for_exit()
    assert connected.output().split() == [b"77", b"1", b"0"]
    assert limits() == before


async def test_a_child_has_the_file_limit_with_which_the_keeper_was_started(connected: KeeperHarness) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    await connected.spawn("ulimit -Sn")
    await connected.wait_for_exit()
    assert connected.output().split() == [b"%d" % soft]
    assert resource.prlimit(connected.keeper.pid, resource.RLIMIT_NOFILE) == (hard, hard)


async def test_the_reply_to_a_spawn_has_the_start_time_of_the_process(connected: KeeperHarness) -> None:
    spawned = await connected.spawn("sleep 1000")
    fields = Path(f"/proc/{spawned.pid}/stat").read_text().rpartition(")")[2].split()
    assert spawned.started == int(fields[19])


async def test_two_spawns_with_the_same_nonce_start_one_child(connected: KeeperHarness) -> None:
    first = await connected.spawn("echo once; sleep 1000", nonce="same")
    assert await connected.spawn("echo twice", nonce="same") == first
    assert len(await connected.keeper.status()) == 1


async def test_a_run_is_never_started_again_with_another_nonce(connected: KeeperHarness) -> None:
    await connected.spawn("echo first", nonce="one")
    await connected.wait_for_exit()
    for _ in range(2):
        with pytest.raises(KeeperFault) as fault:
            await connected.spawn("echo second", nonce="two")
        assert fault.value.errno == errno.EEXIST
        if connected.keeper.children:
            await connected.keeper.ack_exit("w", 1)
    assert connected.output() == b"first\r\n"


@pytest.mark.parametrize(
    ("options", "number", "reason"),
    [
        (
            {"argv": ["no-such-program"]},
            errno.ENOENT,
            "cannot start no-such-program: No such file or directory",
        ),
        ({"argv": ["/no/such/program"]}, errno.ENOENT, "cannot start /no/such/program: No such file"),
        ({"argv": ["/etc/passwd"]}, errno.EACCES, "cannot start /etc/passwd: Permission denied"),
        (
            {"argv": ["sh"], "cwd": "/no/where"},
            errno.ENOENT,
            "cannot start sh: No such file or directory (/no/where)",
        ),
        ({"argv": []}, errno.EINVAL, "argv"),
        ({"argv": ["a\0b"]}, errno.EINVAL, "NUL"),
        ({"argv": ["sh"], "cols": 0}, errno.EINVAL, "0x24"),
        ({"argv": ["sh"], "limits": {"wings": 2}}, errno.EINVAL, "wings"),
        ({"argv": ["sh"], "limits": {"nofile": 1 << 40}}, errno.EINVAL, ""),
        ({"argv": ["sh"], "worker": "../up"}, errno.EINVAL, "../up"),
        ({"argv": ["sh"], "worker": ".."}, errno.EINVAL, "'..'"),
        ({"argv": ["sh"], "worker": ""}, errno.EINVAL, "''"),
        ({"argv": ["sh"], "run": "x"}, errno.EINVAL, ""),
    ],
    ids=str,
)
async def test_a_spawn_that_fails_reports_the_reason_and_leaves_no_file(
    connected: KeeperHarness, options: dict[str, object], number: int, reason: str
) -> None:
    await connected.spawn("sleep 1000", "other")
    before = _descriptors(connected)
    with pytest.raises(KeeperFault) as fault:
        await connected.spawn(**{"worker": "w", "run": 1, **options})  # type: ignore[arg-type]
    assert fault.value.errno == number
    assert reason in fault.value.message
    assert _descriptors(connected) == before
    assert not list((connected.home / "spool").glob("w/*"))
    await connected.spawn("exit 4")
    assert (await connected.wait_for_exit()).code == 4


def _descriptors(harness: KeeperHarness) -> int:
    return len(os.listdir(f"/proc/{harness.keeper.pid}/fd"))


async def test_a_signal_reaches_the_whole_process_group(connected: KeeperHarness) -> None:
    await connected.spawn("sleep 1000 & echo $!; wait")
    inner = int(await connected.wait_for_output(b"\n"))
    await connected.keeper.signal("w", 1, signal.SIGTERM)
    assert (await connected.wait_for_exit()).signal == signal.SIGTERM
    await wait_until(lambda: has_ended(inner), "the end of the grandchild")


async def test_requests_for_a_child_that_has_ended_are_refused(connected: KeeperHarness) -> None:
    await connected.spawn("exit 0")
    await connected.wait_for_exit()
    keeper = connected.keeper
    for request in (
        keeper.write("w", 1, "test", 1, b"x"),
        keeper.resize("w", 1, 10, 10),
        keeper.signal("w", 1, signal.SIGTERM),
        keeper.close_input("w", 1),
        keeper.write("w", 99, "test", 1, b"x"),
    ):
        with pytest.raises(KeeperFault) as fault:
            await request
        assert fault.value.errno == errno.ESRCH


async def test_a_keeper_imports_few_modules_and_no_other_part_of_bullpen(connected: KeeperHarness) -> None:
    """Its memory stays small: it imports no asyncio, no typing and no installed package."""
    source = (
        "import sys; sys.path.append(sys.argv[1]); import bullpen.keeper.__main__;print(*sorted(sys.modules))"
    )
    root = Path(sys.modules["bullpen"].__path__[0]).parent
    await connected.spawn([sys.executable, "-I", "-S", "-c", source, str(root)], tty=False)
    await connected.wait_for_exit()
    loaded = set(connected.output().decode().split())
    assert not loaded & {"asyncio", "typing", "threading", "dataclasses", "subprocess", "pathlib", "site"}
    own = {name for name in loaded if name.startswith("bullpen")}
    assert not own & {"bullpen.keeper.client", "bullpen.keeper.remote", "bullpen.keeper.marker"}
    assert all(name == "bullpen" or name.startswith("bullpen.keeper") for name in own)
