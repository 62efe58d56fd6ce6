"""What a child is started with, and that it has nothing of its keeper."""

import errno
import os
import resource
import signal
import stat
import sys
from pathlib import Path

import pytest

from bullpen.keeper.client import KeeperFault
from keeper.house import House, gone, until


async def test_a_child_has_a_controlling_terminal(open_house: House) -> None:
    spawned = await open_house.spawn(
        "tty; exec 3<>/dev/tty; echo direct >&3; ps -o tty= -p $$; stty size", cols=100, rows=30
    )
    await open_house.exited()
    said = open_house.said().decode().split("\r\n")
    assert spawned.tty is not None
    assert said[:4] == [spawned.tty, "direct", spawned.tty.removeprefix("/dev/"), "30 100"]


async def test_job_control_works(open_house: House) -> None:
    await open_house.spawn(["bash", "--norc", "-i"], env={"PATH": os.environ["PATH"], "PS1": "$ "})
    await open_house.says(b"$ ")
    keys = [b"sleep 1000\n", b"\x1a", b"fg\n", b"\x03", b"exit 5\n"]
    answers = [b"sleep 1000\r\n", b"Stopped", b"fg\r\nsleep 1000\r\n", b"^C", b"exit 5\r\n"]
    for n, (key, answer) in enumerate(zip(keys, answers, strict=True), 1):
        assert await open_house.keeper.write("w", 1, "test", n, key) == n
        await open_house.says(answer)
        in_front = n in (1, 3)
        await until(lambda wanted=in_front: _foreground_is_sleep(open_house) == wanted, key.decode())  # type: ignore[misc]
    assert (await open_house.exited()).code == 5
    assert b"no job control" not in open_house.said()


def _foreground_is_sleep(house: House) -> bool:
    [shell] = house.pids
    try:
        group = int(Path(f"/proc/{shell}/stat").read_text().rpartition(")")[2].split()[5])
        return group != shell and Path(f"/proc/{group}/comm").read_text() == "sleep\n"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_a_resize_reaches_the_program_and_the_index(open_house: House) -> None:
    await open_house.spawn("trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done")
    await open_house.says(b"ready")
    await open_house.keeper.resize("w", 1, 132, 43)
    await open_house.exited()
    assert open_house.said() == b"ready\r\n43 132\r\n"
    sizes = [(offset, *size) for offset, _, *size in open_house.reader().index() if any(size)]
    assert sizes == [(0, 80, 24), (7, 132, 43)]


async def test_a_terminal_expects_utf8(open_house: House) -> None:
    await open_house.spawn("stty -a")
    await open_house.exited()
    assert b" iutf8" in open_house.said()


@pytest.mark.parametrize("tty", [True, False])
async def test_a_child_inherits_no_descriptor(open_house: House, tty: bool) -> None:
    await open_house.spawn("sleep 1000", "other", tty=True)
    await open_house.python("import os; print(*sorted(os.listdir('/proc/self/fd')))", tty=tty)
    await open_house.exited()
    assert open_house.said().split() == [b"0", b"1", b"2", b"3"]  # 3 is the listing's own


@pytest.mark.parametrize("tty", [True, False])
async def test_a_child_has_all_signals_at_their_defaults(open_house: House, tty: bool) -> None:
    await open_house.spawn(["cat", "/proc/self/status"], tty=tty)
    await open_house.exited()
    masks = dict(
        line.split(":\t") for line in open_house.said().decode().splitlines() if line.startswith("Sig")
    )
    own_to_libc = 1 << 31 | 1 << 32  # nobody can set these
    assert [int(masks[name], 16) & ~own_to_libc for name in ("SigBlk", "SigIgn", "SigCgt")] == [0, 0, 0]


async def test_a_broken_pipe_ends_a_child_as_anywhere(open_house: House) -> None:
    await open_house.spawn(["bash", "-c", "yes | head -1; echo ${PIPESTATUS[0]}"], tty=False)
    await open_house.exited()
    assert open_house.said() == b"y\n%d\n" % (128 + signal.SIGPIPE)


async def test_the_umask_is_the_usual_one_or_the_one_asked_for(open_house: House, tmp_path: Path) -> None:
    await open_house.spawn("touch usual", cwd=str(tmp_path))
    await open_house.spawn("touch asked", run=2, cwd=str(tmp_path), umask=0o027)
    await open_house.exited()
    await open_house.exited(run=2)
    assert stat.S_IMODE((tmp_path / "usual").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "asked").stat().st_mode) == 0o640
    segment = next((open_house.home / "spool/w/2/out").glob("*.bin"))
    assert stat.S_IMODE(segment.stat().st_mode) == 0o600, "the keeper has its own umask back"


async def test_the_environment_is_exactly_the_one_given(open_house: House) -> None:
    await open_house.spawn(["env"], env={"PATH": os.environ["PATH"], "NAME": "a b\u00e9", "RAW": "\udcff"})
    await open_house.exited()
    given = {b"PATH=" + os.environb[b"PATH"], "NAME=a bé".encode(), b"RAW=\xff"}
    assert set(open_house.said().split(b"\r\n")) == given | {b""}


async def test_a_program_is_found_in_the_childs_own_path(open_house: House, tmp_path: Path) -> None:
    program = tmp_path / "own"
    program.write_text("#!/bin/sh\npwd\n")
    program.chmod(0o755)
    await open_house.spawn(["own"], env={"PATH": f"/nowhere:{tmp_path}"}, cwd=str(tmp_path))
    assert (await open_house.exited()).code == 0
    assert open_house.said() == f"{tmp_path}\r\n".encode()


async def test_limits_are_for_the_child_alone(open_house: House) -> None:
    def limits() -> list[tuple[int, int]]:
        names = (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU, resource.RLIMIT_CORE)
        return [resource.prlimit(open_house.keeper.pid, name) for name in names]

    before = limits()
    await open_house.spawn("ulimit -Sn; ulimit -St; ulimit -Sc", limits={"nofile": 77, "cpu": 1, "core": 0})
    await open_house.exited()
    assert open_house.said().split() == [b"77", b"1", b"0"]
    assert limits() == before


async def test_a_child_gets_the_limit_of_files_the_keeper_was_started_with(open_house: House) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    await open_house.spawn("ulimit -Sn")
    await open_house.exited()
    assert open_house.said().split() == [b"%d" % soft]
    assert resource.prlimit(open_house.keeper.pid, resource.RLIMIT_NOFILE) == (hard, hard)


async def test_the_answer_names_the_process_for_ever(open_house: House) -> None:
    spawned = await open_house.spawn("sleep 1000")
    fields = Path(f"/proc/{spawned.pid}/stat").read_text().rpartition(")")[2].split()
    assert spawned.started == int(fields[19])


async def test_the_same_nonce_twice_is_one_child(open_house: House) -> None:
    first = await open_house.spawn("echo once; sleep 1000", nonce="same")
    assert await open_house.spawn("echo twice", nonce="same") == first
    assert len(await open_house.keeper.status()) == 1


async def test_a_run_is_never_started_again_under_another_nonce(open_house: House) -> None:
    await open_house.spawn("echo first", nonce="one")
    await open_house.exited()
    for _ in range(2):
        with pytest.raises(KeeperFault) as fault:
            await open_house.spawn("echo second", nonce="two")
        assert fault.value.errno == errno.EEXIST
        if open_house.keeper.children:
            await open_house.keeper.ack_exit("w", 1)
    assert open_house.said() == b"first\r\n"


@pytest.mark.parametrize(
    ("how", "number", "reason"),
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
async def test_a_spawn_that_fails_says_why_and_leaves_nothing(
    open_house: House, how: dict[str, object], number: int, reason: str
) -> None:
    await open_house.spawn("sleep 1000", "other")
    before = _descriptors(open_house)
    with pytest.raises(KeeperFault) as fault:
        await open_house.spawn(**{"worker": "w", "run": 1, **how})  # type: ignore[arg-type]
    assert fault.value.errno == number
    assert reason in fault.value.message
    assert _descriptors(open_house) == before
    assert not list((open_house.home / "spool").glob("w/*"))
    await open_house.spawn("exit 4")
    assert (await open_house.exited()).code == 4


def _descriptors(house: House) -> int:
    return len(os.listdir(f"/proc/{house.keeper.pid}/fd"))


async def test_a_signal_reaches_the_whole_group(open_house: House) -> None:
    await open_house.spawn("sleep 1000 & echo $!; wait")
    inner = int(await open_house.says(b"\n"))
    await open_house.keeper.signal("w", 1, signal.SIGTERM)
    assert (await open_house.exited()).signal == signal.SIGTERM
    await until(lambda: gone(inner), "the end of the grandchild")


async def test_a_child_that_has_ended_takes_no_orders(open_house: House) -> None:
    await open_house.spawn("exit 0")
    await open_house.exited()
    keeper = open_house.keeper
    for order in (
        keeper.write("w", 1, "test", 1, b"x"),
        keeper.resize("w", 1, 10, 10),
        keeper.signal("w", 1, signal.SIGTERM),
        keeper.close_input("w", 1),
        keeper.write("w", 99, "test", 1, b"x"),
    ):
        with pytest.raises(KeeperFault) as fault:
            await order
        assert fault.value.errno == errno.ESRCH


async def test_a_keeper_loads_little_and_nothing_of_the_rest_of_bullpen(open_house: House) -> None:
    """Memory stays small: no asyncio, no typing, nothing of site-packages."""
    source = (
        "import sys; sys.path.append(sys.argv[1]); import bullpen.keeper.__main__;print(*sorted(sys.modules))"
    )
    root = Path(sys.modules["bullpen"].__path__[0]).parent
    await open_house.spawn([sys.executable, "-I", "-S", "-c", source, str(root)], tty=False)
    await open_house.exited()
    loaded = set(open_house.said().decode().split())
    assert not loaded & {"asyncio", "typing", "threading", "dataclasses", "subprocess", "pathlib", "site"}
    ours = {name for name in loaded if name.startswith("bullpen")}
    assert not ours & {"bullpen.keeper.client", "bullpen.keeper.remote", "bullpen.keeper.marker"}
    assert all(name == "bullpen" or name.startswith("bullpen.keeper") for name in ours)
