"""The data directory is private with any umask, and one server owns it at a time."""

import asyncio
import fcntl
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from bullpen.domain.errors import Invalid
from bullpen.home import OPENED_BY_NAME, hold, write_private
from support.commands import Bullpen
from support.pictures import png
from support.registered_repository import RegisteredRepository
from support.repositories import Repo
from support.server import Server


def modes(home: Path) -> dict[str, int]:
    return {
        str(path.relative_to(home)): stat.S_IMODE(path.lstat().st_mode)
        for path in [home, *home.rglob("*")]
        if not path.is_symlink()
    }


async def test_files_of_the_data_directory_are_private_under_umask_000(
    tmp_path: Path, workspace: Path
) -> None:
    previous_umask = os.umask(0)
    try:
        server = Server(tmp_path / "home", workspace)
        await server.start()
        try:
            session = await server.new_session()
            await server.new_terminal(session["id"])
            await server.call("POST", f"/api/sessions/{session['id']}/images", 201, content=png())
            repository = await RegisteredRepository.register(server, Repo(workspace / "repo"))
            await repository.add(branch="gone", base="main")
            await repository.remove("gone")
            await server.call("POST", "/api/tokens/rotate", 200)
            async with asyncio.timeout(60):
                while not any(server.home.glob("recordings/*/*")):
                    await asyncio.sleep(0.02)
            found = modes(server.home)
        finally:
            await server.close()
    finally:
        os.umask(previous_umask)
    assert {"token", "secret", "bullpen.db", "logs/server.log", "logs/audit.log"} <= set(found)
    assert {"images", "recordings", "trash", "spool"} <= {
        Path(name).parts[0] for name in found if "/" in name
    }
    # The files of a removed worktree keep their modes for a restore; their parent directory is private.
    others = {name: mode for name, mode in found.items() if not re.match("trash/[^/]+/(tree|admin)", name)}
    assert not {name: oct(mode) for name, mode in others.items() if mode & 0o077}


async def test_a_planted_link_in_the_data_directory_is_not_followed(tmp_path: Path, workspace: Path) -> None:
    home, victim = tmp_path / "home", tmp_path / "victim"
    home.mkdir(mode=0o700)
    victim.write_text("precious")
    (home / "logs").mkdir()
    for name in ("token", "token.next", "secret", "server.json", "logs/server.log", "logs/audit.log"):
        (home / name).symlink_to(victim)
    server = Server(home, workspace)
    await server.start()
    try:
        await server.new_session()
        answer = await server.http.get("/api/sessions", headers={"Authorization": "Bearer precious"})
        assert answer.status_code == 401
    finally:
        await server.close()
    assert victim.read_text() == "precious"
    assert not any((home / name).is_symlink() for name in ("token", "secret", "server.json"))


@pytest.mark.parametrize("name", OPENED_BY_NAME)
def test_a_link_in_place_of_a_file_that_the_server_opens_is_refused_in_a_sentence(
    tmp_path: Path, name: str
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / name).symlink_to(victim)
    with (
        pytest.raises(Invalid, match=f"{name} is a symbolic link, which is not followed"),
        hold(tmp_path / "home"),
    ):
        pass
    assert list(victim.iterdir()) == []


async def test_a_second_server_on_one_home_is_refused_and_a_stale_lock_is_ignored(
    server: Server,
) -> None:
    second = await Bullpen(server.environment() | {"BULLPEN_PORT": "0"})("serve", "--no-open")
    assert second.code != 0
    assert "another server runs on" in second.err
    assert "Traceback" not in second.err
    await server.kill()
    assert (server.home / "server.lock").exists()
    await server.start()


def test_the_server_waits_until_a_child_of_the_last_server_releases_its_lock(tmp_path: Path) -> None:
    """A forked child has the descriptor of the lock until it executes its program."""
    lock = os.open(tmp_path / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with subprocess.Popen(["sleep", "0.2"], pass_fds=[lock]):
        os.close(lock)
        with hold(tmp_path):
            pass


async def test_programs_started_from_another_database_are_not_touched(server: Server, tmp_path: Path) -> None:
    session = await server.call("POST", "/api/sessions", json={"type": "quick"})
    path = f"/api/sessions/{session['id']}/workers"
    worker = await server.new_terminal(session["id"])
    await server.kill()
    bullpen = Bullpen(server.environment() | {"BULLPEN_DATABASE_URL": f"sqlite:///{tmp_path / 'other.db'}"})
    other = await bullpen("serve", "--no-open")
    assert other.code == 1
    assert other.err.startswith("bullpen: this database has no record of 1 of the programs that run here")
    await server.start()
    [adopted] = (await server.call("GET", path))["workers"]
    assert (adopted["state"], adopted["run"]) == ("active", 1)
    assert other.err.endswith(f"kill -9 {adopted['pid']}\n")
    assert adopted["id"] == worker["id"]


def test_a_file_that_cannot_be_replaced_leaves_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "taken" / "by a directory").mkdir(parents=True)
    with pytest.raises(OSError, match="taken"):
        write_private(tmp_path / "taken", "text")
    assert os.listdir(tmp_path) == ["taken"]
