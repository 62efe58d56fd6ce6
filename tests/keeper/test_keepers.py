"""Keepers come and go: started, found again, replaced by newer ones, lost; one lock each."""

import asyncio
import fcntl
import os
import signal
import socket
import stat
from pathlib import Path

import pytest

from bullpen.keeper.client import KeeperLost
from bullpen.keeper.frames import VERSION
from keeper.house import House, run_keeper, until

# Seconds a keeper waits for a server: enough for one that comes at once, however busy the machine is.
PATIENCE = "2"


def keeper_files(house: House) -> list[str]:
    return sorted(path.name for path in (house.home / "keeper").iterdir())


def lock_is_free(path: Path) -> bool:
    with path.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


async def test_a_keeper_outlives_its_server_and_is_found_again(house: House) -> None:
    async with house.server():
        spawned = await house.spawn("read x; echo got $x")
        first = house.keeper.id
    async with house.server() as keepers:
        assert house.keeper.id == first
        assert keepers.children["w", 1].pid == spawned.pid
        await keepers.keeper_of("w", 1).write("w", 1, "a", 1, b"mail\n")
        await house.says(b"got mail")


async def test_a_keeper_belongs_to_nobody(open_house: House) -> None:
    """Own session, parent gone, no terminal, no variable of the server, its own umask."""
    await open_house.spawn("exit 0")
    pid = open_house.keeper.pid
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    parent, session, terminal = int(fields[1]), int(fields[3]), int(fields[4])
    assert parent != os.getpid()
    assert session not in (os.getsid(0), pid), "not even a session leader, so it can never get a terminal"
    assert terminal == 0
    assert Path(f"/proc/{pid}/environ").read_bytes().replace(b"LC_CTYPE=C.UTF-8\0", b"") == b""
    assert os.readlink(f"/proc/{pid}/cwd") == "/"


async def test_dead_keepers_are_cleared_away(house: House) -> None:
    async with house.server():
        dead = house.keeper
        os.kill(dead.pid, signal.SIGKILL)
        await dead.wait_closed()
    (house.home / "keeper" / "lonely.lock").touch(0o600)
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(f"/proc/self/fd/{os.open(house.home / 'keeper', os.O_PATH)}/stale.sock")
    async with house.server():
        assert house.keeper.id != dead.id
        alive = house.keeper.id
        assert keeper_files(house) == [f"{alive}.{suffix}" for suffix in ("lock", "log", "sock")]


async def test_what_a_keeper_died_of_is_kept(house: House) -> None:
    async with house.server():
        dead = house.keeper
        (house.home / "keeper" / f"{dead.id}.log").write_text("Traceback\n")
        os.kill(dead.pid, signal.SIGKILL)
        await dead.wait_closed()
    async with house.server():
        assert f"{dead.id}.log" in keeper_files(house)
        assert f"{dead.id}.lock" not in keeper_files(house)


def test_two_keepers_with_one_lock_are_refused(house: House) -> None:
    assert run_keeper(house.home, "one", BULLPEN_KEEPER_PATIENCE="60").returncode == 0
    assert not lock_is_free(house.home / "keeper/one.lock")
    second = run_keeper(house.home, "one")
    assert second.returncode == 1
    assert second.stderr.startswith("keeper one: ")
    [pid] = _holders(house.home / "keeper/one.lock")
    os.kill(pid, signal.SIGKILL)


def _holders(path: Path) -> list[int]:
    """The processes that have a file open."""
    holders = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            targets = [os.readlink(fd) for fd in (process / "fd").iterdir()]
        except OSError:
            continue
        if str(path) in targets:
            holders.append(int(process.name))
    return holders


async def test_a_stale_socket_is_taken_over(house: House) -> None:
    (house.home / "keeper").mkdir(mode=0o700)
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(f"/proc/self/fd/{os.open(house.home / 'keeper', os.O_PATH)}/one.sock")
    assert run_keeper(house.home, "one").returncode == 0
    async with house.server():
        assert house.keeper.id == "one"


async def test_a_keeper_with_nothing_to_keep_ends(house: House) -> None:
    assert run_keeper(house.home, "brief", BULLPEN_KEEPER_PATIENCE="0.05").returncode == 0
    await until(lambda: keeper_files(house) == [], "its end, with all its files")


async def test_a_keeper_with_a_child_waits_for_its_server(house: House) -> None:
    """Also for one that has ended: its exit is not known yet."""
    assert run_keeper(house.home, "patient", BULLPEN_KEEPER_PATIENCE=PATIENCE).returncode == 0
    async with house.server() as keepers:
        assert house.keeper.id == "patient"
        spawned = await house.spawn("exit 3")
        keeper = house.keeper.pid
    await until(lambda: not Path(f"/proc/{spawned.pid}").exists(), "the end of the child")
    assert run_keeper(house.home, "idle", BULLPEN_KEEPER_PATIENCE=PATIENCE).returncode == 0
    await until(lambda: "idle.lock" not in keeper_files(house), "the end of one that began to wait later")
    assert Path(f"/proc/{keeper}").exists()
    async with house.server() as keepers:
        await keepers.keeper_of("w", 1).ack_exit("w", 1)
    await until(lambda: keeper_files(house) == [], "its end")


async def test_after_an_upgrade_an_old_keeper_keeps_its_children_and_a_new_one_takes_others(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bullpen.keeper.client.VERSION", VERSION - 1)
    assert run_keeper(house.home, "old", VERSION - 1, BULLPEN_KEEPER_PATIENCE=PATIENCE).returncode == 0
    async with house.server():
        assert (house.keeper.id, house.keeper.version) == ("old", VERSION - 1)
        await house.spawn(["cat"], "before")
    monkeypatch.undo()
    async with house.server() as keepers:
        assert house.keeper.id != "old"
        await house.spawn(["cat"], "after")
        for n, worker in enumerate(("before", "after", "before", "after"), 1):
            await keepers.keeper_of(worker, 1).write(worker, 1, "a", (n + 1) // 2, b"%d\n" % n)
            await house.says(b"%d\r\n%d\r\n" % (n, n), worker)
        old = keepers.keeper_of("before", 1)
        assert (old.id, keepers.keeper_of("after", 1)) == ("old", house.keeper)
        await old.signal("before", 1, signal.SIGKILL)
        await house.exited("before")
        await old.ack_exit("before", 1)
        await until(lambda: not (house.home / "keeper/old.lock").exists(), "the end of the old keeper")
        await keepers.keeper_of("after", 1).write("after", 1, "a", 3, b"still here\n")
        await house.says(b"still here", "after")
        assert house.lost == []


async def test_children_of_a_keeper_that_died_are_lost_and_the_next_finds_a_new_one(
    open_house: House,
) -> None:
    await open_house.spawn("sleep 1000", "a")
    await open_house.spawn("sleep 1000", "b", tty=False)
    dead = open_house.keeper
    pending = dead.write("a", 1, "x", 1, b"y")
    os.kill(dead.pid, signal.SIGKILL)
    await until(lambda: open_house.lost == [("a", 1), ("b", 1)], "the news")
    with pytest.raises(KeeperLost):
        await dead.status()
    with pytest.raises(KeeperLost):
        open_house.keepers.keeper_of("a", 1)
    if pending.done() and pending.exception() is None:
        assert pending.result() == 1, "it may have been taken just before"
    results = await asyncio.gather(*(open_house.spawn("echo again", "c", run) for run in range(1, 4)))
    assert len({spawned.pid for spawned in results}) == 3
    assert open_house.keeper.id != dead.id
    await open_house.exited("c", 3)
    assert len(list((open_house.home / "keeper").glob("*.sock"))) == 2, "one is the dead one's"


async def test_nobody_is_called_lost_when_the_server_leaves(house: House) -> None:
    async with house.server():
        await house.spawn("sleep 1000")
    assert house.lost == []


async def test_nothing_is_called_back_before_the_body_waits(house: House) -> None:
    async with house.server():
        await house.spawn("exit 0")
        await house.exited()
    async with house.server() as keepers:
        assert house.exits == {}
        assert house.ends == {}
        assert keepers.children["w", 1].exit is not None
        await house.exited()


async def test_files_are_private_under_any_umask(house: House) -> None:
    old = os.umask(0)
    try:
        async with house.server():
            await house.spawn("echo hello", tty=False)
            await house.exited()
    finally:
        os.umask(old)
    made = [
        path for top in ("keeper", "spool") for path in [house.home / top, *(house.home / top).rglob("*")]
    ]
    assert len(made) >= 12
    for path in made:
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert mode in ((0o700,) if path.is_dir() else (0o700, 0o600)), path
        assert mode == 0o600 or path.is_dir() or path.is_socket(), path


@pytest.mark.parametrize("planted", ["keeper", "spool", "keeper/one.lock"])
def test_a_planted_symlink_is_not_followed(house: House, tmp_path: Path, planted: str) -> None:
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    (house.home / planted).parent.mkdir(mode=0o700, exist_ok=True)
    (house.home / planted).symlink_to(target if "." not in planted else target / "file")
    refused = run_keeper(house.home, "one")
    assert refused.returncode == 1
    assert refused.stderr.startswith("keeper one: ")
    assert list(target.iterdir()) == []


async def test_a_planted_symlink_for_a_worker_is_not_followed(open_house: House, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (open_house.home / "spool/w").symlink_to(target)
    with pytest.raises(Exception, match="cannot start sh: Not a directory"):
        await open_house.spawn("echo hello")
    await open_house.keeper.remove_spools("w")
    assert not (open_house.home / "spool/w").is_symlink()
    assert target.is_dir()


def test_a_directory_open_to_others_is_refused(house: House) -> None:
    (house.home / "keeper").mkdir()
    (house.home / "keeper").chmod(0o755)
    refused = run_keeper(house.home, "one")
    assert refused.returncode == 1
    assert "others have access" in refused.stderr


async def test_a_home_with_a_path_longer_than_a_socket_address(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30)
    home.mkdir(mode=0o700)
    house = House(home)
    try:
        async with house.server():
            await house.spawn("echo deep")
            await house.exited()
            assert house.said() == b"deep\r\n"
    finally:
        house.close()


async def test_a_keeper_that_cannot_start_says_why(house: House) -> None:
    (house.home / "spool").write_text("in the way")
    with pytest.raises(KeeperLost, match=r"no keeper could be started: .*Not a directory"):
        async with house.server():
            pass
