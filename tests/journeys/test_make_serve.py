"""`make serve`, the first command after a clone, prints an address and serves the page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from support.ports import free_port
from support.server import end_processes_of

ROOT = Path(__file__).parents[2]
FULL = os.environ.get("BULLPEN_FAULTS") == "full"
# A new clone downloads all packages, so it is tested only in full runs.
TREES = ["this tree", "a fresh clone"] if FULL else ["this tree"]
# Variables with which this machine reaches package registries; only a new clone needs them.
NETWORK = re.compile(r"(pip|npm_config|ssl_cert)_.*|.*_proxy|.*_ca_(bundle|certs)", re.IGNORECASE)


@pytest.mark.parametrize("tree", TREES)
def test_make_serve_serves_the_page_to_a_user_with_an_empty_home(tree: str, tmp_path: Path) -> None:
    directory, home, port = ROOT, tmp_path / "home", free_port()
    home.mkdir()
    if tree == "a fresh clone":
        directory = tmp_path / "clone"
        subprocess.run(["git", "clone", "--quiet", ROOT, directory], check=True)
    env = {name: value for name, value in os.environ.items() if NETWORK.fullmatch(name)} | {
        "HOME": str(home),
        "PATH": f"{sys.base_prefix}/bin:/usr/bin:/bin",
        "BULLPEN_PORT": str(port),
    }
    command = ["make", "serve", "ARGS=--no-open"]
    try:
        with subprocess.Popen(command, cwd=directory, env=env, stdout=subprocess.PIPE, text=True) as make:
            try:
                assert make.stdout is not None
                line = next((line for line in make.stdout if "#code=" in line), "no address was printed")
                assert f"http://127.0.0.1:{port}/#code=" in line
                with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
                    assert http.get("/api/health").status_code == 200
                    assert '<script type="module"' in http.get("/").raise_for_status().text
            finally:
                make.terminate()
        with pytest.raises(httpx.ConnectError):  # the server ended with make
            httpx.get(f"http://127.0.0.1:{port}/", trust_env=False)
    finally:
        end_processes_of(home / ".local" / "share" / "bullpen")
