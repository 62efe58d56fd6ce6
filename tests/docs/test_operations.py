"""What docs/operations.md advises works: a copy of a running server's data brings everything back."""

import re
import shutil
import subprocess
from pathlib import Path

from support.server import Server

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
DATA = Path(".local", "share", "bullpen")


def backup_command() -> str:
    (command,) = re.findall(r"^```\n(python3 -c .*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert isinstance(command, str)
    return command


async def test_a_backup_of_a_running_server_brings_its_sessions_and_recordings_back(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    (home / DATA).parent.mkdir(parents=True)
    copy.mkdir()
    server, restored = Server(home / DATA, tmp_path), Server(copy, tmp_path)
    try:
        await server.start()
        session = await server.new_session(title="precious")
        worker = await server.new_terminal(session["id"])
        output = f"/api/sessions/{session['id']}/workers/{worker['id']}/output"

        env = {"HOME": str(home), "PATH": "/usr/bin:/bin:/usr/local/bin"}
        subprocess.run(["bash", "-ec", backup_command()], cwd=tmp_path, env=env, check=True, timeout=60)
        shutil.copytree(home / DATA / "spool", copy / "spool")
        (tmp_path / "backup.db").rename(copy / "bullpen.db")
        printed = (await server.http.get(output)).content

        await restored.start()
        lost = await restored.worker_in(session["id"], worker["id"], "failed")
        assert lost["error"] == "keeper lost"
        assert (await restored.call("GET", f"/api/sessions/{session['id']}"))["title"] == "precious"
        assert printed.startswith((await restored.http.get(output)).content)
        await restored.call("POST", f"/api/sessions/{session['id']}/workers/{worker['id']}/restart")
        again = await restored.worker_in(session["id"], worker["id"], "active")
        assert again["run"] == 2
    finally:
        await server.close()
        await restored.close()
