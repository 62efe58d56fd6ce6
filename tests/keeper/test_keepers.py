"""Keepers are started, found again, replaced by newer ones and lost; each holds its lock."""

import asyncio
import fcntl
import os
import signal
import socket
import stat
from pathlib import Path

import pytest

from bullpen.keeper.client import KeeperFault, KeeperLost
from bullpen.keeper.frames import VERSION
from keeper.harness import KeeperHarness, run_keeper, wait_until

# Seconds that a keeper waits for a server: enough for the test to connect, also on a busy machine.
SERVER_WAIT_SECONDS = "2"


def keeper_files(harness: KeeperHarness) -> list[str]:
    return sorted(path.name for path in (harness.home / "keeper").iterdir())


def lock_is_free(path: Path) -> bool:
    with path.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


async def test_a_keeper_outlives_its_server_and_is_found_again(harness: KeeperHarness) -> None:
    async with harness.connect():
        spawned = await harness.spawn("read x; echo got $x")
        first = harness.keeper.id
    async with harness.connect() as keepers:
        assert harness.keeper.id == first
        assert keepers.children["w", 1].pid == spawned.pid
        await keepers.keeper_of("w", 1).write("w", 1, "a", 1, b"mail\n")
        await harness.wait_for_output(b"got mail")


async def test_a_keeper_is_detached_from_the_server(connected: KeeperHarness) -> None:
    """It has a session of its own, another parent, no terminal and no variable of the server."""
    await connected.spawn("exit 0")
    pid = connected.keeper.pid
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    parent, session, terminal = int(fields[1]), int(fields[3]), int(fields[4])
    assert parent != os.getpid()
    assert session not in (os.getsid(0), pid), "a session leader could get a terminal"
    assert terminal == 0
    assert Path(f"/proc/{pid}/environ").read_bytes().replace(b"LC_CTYPE=C.UTF-8\0", b"") == b""
    assert os.readlink(f"/proc/{pid}/cwd") == "/"


async def test_files_of_dead_keepers_are_removed(harness: KeeperHarness) -> None:
    async with harness.connect():
        dead = harness.keeper
        os.kill(dead.pid, signal.SIGKILL)
        await dead.wait_closed()
    (harness.home / "keeper" / "stray.lock").touch(0o600)
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(f"/proc/self/fd/{os.open(harness.home / 'keeper', os.O_PATH)}/stale.sock")
    async with harness.connect():
        assert harness.keeper.id != dead.id
        alive = harness.keeper.id
        assert keeper_files(harness) == [f"{alive}.{suffix}" for suffix in ("lock", "log", "sock")]


async def test_the_log_of_a_crashed_keeper_is_kept(harness: KeeperHarness) -> None:
    async with harness.connect():
        dead = harness.keeper
        (harness.home / "keeper" / f"{dead.id}.log").write_text("Traceback\n")
        os.kill(dead.pid, signal.SIGKILL)
        await dead.wait_closed()
    async with harness.connect():
        assert f"{dead.id}.log" in keeper_files(harness)
        assert f"{dead.id}.lock" not in keeper_files(harness)


def test_two_keepers_with_one_lock_are_refused(harness: KeeperHarness) -> None:
    assert run_keeper(harness.home, "one", BULLPEN_KEEPER_PATIENCE="60").returncode == 0
    assert not lock_is_free(harness.home / "keeper/one.lock")
    second = run_keeper(harness.home, "one")
    assert second.returncode == 1
    assert second.stderr.startswith("keeper one: ")
    [pid] = _holders(harness.home / "keeper/one.lock")
    os.kill(pid, signal.SIGKILL)


def _holders(path: Path) -> list[int]:
    """Return the processes that have the file open."""
    holders = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            targets = [os.readlink(fd) for fd in (process / "fd").iterdir()]
        except OSError:
            continue
        if str(path) in targets:
            holders.append(int(process.name))
    return holders


async def test_a_stale_socket_is_taken_over(harness: KeeperHarness) -> None:
    (harness.home / "keeper").mkdir(mode=0o700)
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(f"/proc/self/fd/{os.open(harness.home / 'keeper', os.O_PATH)}/one.sock")
    assert run_keeper(harness.home, "one").returncode == 0
    async with harness.connect():
        assert harness.keeper.id == "one"


async def test_a_keeper_without_children_ends(harness: KeeperHarness) -> None:
    assert run_keeper(harness.home, "brief", BULLPEN_KEEPER_PATIENCE="0.05").returncode == 0
    await wait_until(lambda: keeper_files(harness) == [], "the removal of all files of the keeper")


async def test_a_keeper_with_a_child_waits_for_its_server(harness: KeeperHarness) -> None:
    """It also waits when the child has ended: no server has received its exit."""
    assert run_keeper(harness.home, "patient", BULLPEN_KEEPER_PATIENCE=SERVER_WAIT_SECONDS).returncode == 0
    async with harness.connect() as keepers:
        assert harness.keeper.id == "patient"
        spawned = await harness.spawn("exit 3")
        keeper = harness.keeper.pid
    await wait_until(lambda: not Path(f"/proc/{spawned.pid}").exists(), "the end of the child")
    assert run_keeper(harness.home, "idle", BULLPEN_KEEPER_PATIENCE=SERVER_WAIT_SECONDS).returncode == 0
    await wait_until(
        lambda: "idle.lock" not in keeper_files(harness), "the end of the keeper that was started later"
    )
    assert Path(f"/proc/{keeper}").exists()
    async with harness.connect() as keepers:
        await keepers.keeper_of("w", 1).ack_exit("w", 1)
    await wait_until(lambda: keeper_files(harness) == [], "the end of the keeper")


async def test_after_an_upgrade_an_old_keeper_keeps_its_children_and_a_new_one_starts_others(
    harness: KeeperHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bullpen.keeper.client.VERSION", VERSION - 1)
    assert (
        run_keeper(harness.home, "old", VERSION - 1, BULLPEN_KEEPER_PATIENCE=SERVER_WAIT_SECONDS).returncode
        == 0
    )
    async with harness.connect():
        assert (harness.keeper.id, harness.keeper.version) == ("old", VERSION - 1)
        await harness.spawn(["cat"], "before")
    monkeypatch.undo()
    async with harness.connect() as keepers:
        assert harness.keeper.id != "old"
        await harness.spawn(["cat"], "after")
        for n, worker in enumerate(("before", "after", "before", "after"), 1):
            await keepers.keeper_of(worker, 1).write(worker, 1, "a", (n + 1) // 2, b"%d\n" % n)
            await harness.wait_for_output(b"%d\r\n%d\r\n" % (n, n), worker)
        old = keepers.keeper_of("before", 1)
        assert (old.id, keepers.keeper_of("after", 1)) == ("old", harness.keeper)
        await old.signal("before", 1, signal.SIGKILL)
        await harness.wait_for_exit("before")
        await old.ack_exit("before", 1)
        await wait_until(lambda: not (harness.home / "keeper/old.lock").exists(), "the end of the old keeper")
        await keepers.keeper_of("after", 1).write("after", 1, "a", 3, b"still here\n")
        await harness.wait_for_output(b"still here", "after")
        assert harness.lost == []


async def test_children_of_a_dead_keeper_are_lost_and_the_next_child_gets_a_new_keeper(
    connected: KeeperHarness,
) -> None:
    await connected.spawn("sleep 1000", "a")
    await connected.spawn("sleep 1000", "b", tty=False)
    dead = connected.keeper
    pending = dead.write("a", 1, "x", 1, b"y")
    os.kill(dead.pid, signal.SIGKILL)
    await wait_until(lambda: connected.lost == [("a", 1), ("b", 1)], "the report of the lost children")
    with pytest.raises(KeeperLost):
        await dead.status()
    with pytest.raises(KeeperLost):
        connected.keepers.keeper_of("a", 1)
    if pending.done() and pending.exception() is None:
        assert pending.result() == 1, "the write was accepted before the kill"
    results = await asyncio.gather(*(connected.spawn("echo again", "c", run) for run in range(1, 4)))
    assert len({spawned.pid for spawned in results}) == 3
    assert connected.keeper.id != dead.id
    await connected.wait_for_exit("c", 3)
    assert len(list((connected.home / "keeper").glob("*.sock"))) == 2, "one socket is that of the dead keeper"


async def test_no_child_is_reported_lost_when_the_server_disconnects(harness: KeeperHarness) -> None:
    async with harness.connect():
        await harness.spawn("sleep 1000")
    assert harness.lost == []


async def test_no_callback_is_called_before_the_server_waits(harness: KeeperHarness) -> None:
    async with harness.connect():
        await harness.spawn("exit 0")
        await harness.wait_for_exit()
    async with harness.connect() as keepers:
        assert harness.exits == {}
        assert harness.ends == {}
        assert keepers.children["w", 1].exit is not None
        await harness.wait_for_exit()


async def test_files_are_private_under_any_umask(harness: KeeperHarness) -> None:
    old = os.umask(0)
    try:
        async with harness.connect():
            await harness.spawn("echo hello", tty=False)
            await harness.wait_for_exit()
    finally:
        os.umask(old)
    paths = [
        path for top in ("keeper", "spool") for path in [harness.home / top, *(harness.home / top).rglob("*")]
    ]
    assert len(paths) >= 12
    for path in paths:
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert mode in ((0o700,) if path.is_dir() else (0o700, 0o600)), path
        assert mode == 0o600 or path.is_dir() or path.is_socket(), path


@pytest.mark.parametrize("planted", ["keeper", "spool", "keeper/one.lock"])
def test_a_planted_symlink_is_not_followed(harness: KeeperHarness, tmp_path: Path, planted: str) -> None:
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    (harness.home / planted).parent.mkdir(mode=0o700, exist_ok=True)
    (harness.home / planted).symlink_to(target if "." not in planted else target / "file")
    refused = run_keeper(harness.home, "one")
    assert refused.returncode == 1
    assert refused.stderr.startswith("keeper one: ")
    assert list(target.iterdir()) == []


async def test_a_planted_symlink_for_a_worker_is_not_followed(
    connected: KeeperHarness, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (connected.home / "spool/w").symlink_to(target)
    with pytest.raises(KeeperFault, match="cannot start sh: Not a directory"):
        await connected.spawn("echo hello")
    await connected.keeper.remove_spools("w")
    assert not (connected.home / "spool/w").is_symlink()
    assert target.is_dir()


def test_a_directory_that_others_can_access_is_refused(harness: KeeperHarness) -> None:
    (harness.home / "keeper").mkdir()
    (harness.home / "keeper").chmod(0o755)
    refused = run_keeper(harness.home, "one")
    assert refused.returncode == 1
    assert "others have access" in refused.stderr


async def test_a_home_may_have_a_path_longer_than_a_socket_address(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30)
    home.mkdir(mode=0o700)
    harness = KeeperHarness(home)
    try:
        async with harness.connect():
            await harness.spawn("echo deep")
            await harness.wait_for_exit()
            assert harness.output() == b"deep\r\n"
    finally:
        harness.close()


async def test_a_keeper_that_cannot_start_reports_the_reason(harness: KeeperHarness) -> None:
    (harness.home / "spool").write_text("not a directory")
    with pytest.raises(KeeperLost, match=r"no keeper could be started: .*Not a directory"):
        async with harness.connect():
            pass
