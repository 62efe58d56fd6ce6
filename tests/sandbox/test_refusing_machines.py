"""A machine without bubblewrap, one whose kernel refuses user namespaces, and one that also has no Landlock.

The kernel refuses by a filter of system calls, as in a container; bubblewrap and Landlock are the real ones.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bullpen.sandbox.mechanism import ALLOW_NAMESPACES, INSTALL, LANDLOCK_GAPS
from support import refusing_kernel
from support.commands import Bullpen
from support.other_user import run_python
from support.server import Server
from support.session_client import SessionClient, define_scripted

# Prints what this machine offers, and the results of scripts in its sandbox.
DRIVER = """
import json, os, sys
from pathlib import Path
from msgspec import to_builtins
from bullpen.domain.errors import Conflict
from bullpen.sandbox.mechanism import find_mechanism
from support.sandboxed_runs import SandboxedRuns
found = find_mechanism(os.environ)
answer = {"found": to_builtins(found)}
runs = SandboxedRuns(Path.home(), "landlock")  # the files of a home, with a mechanism to be replaced
runs.mechanism = found
for level in ("open", "workspace", "sealed"):
    try:
        answer[level] = runs.run("cat ~/.ssh/id_ed25519", level).returncode
    except Conflict as refused:
        answer[level] = str(refused)
print(json.dumps(answer))
"""


def refusing(*what: str) -> tuple[str, ...]:
    return (sys.executable, refusing_kernel.__file__, ",".join(what))


def try_sandbox(home: Path, *refused: str) -> dict[str, Any]:
    """Return what an ordinary user finds under a kernel that refuses something."""
    prefix = refusing(*refused) if refused else ()
    done = run_python(["-c", DRIVER], "ordinary", home, prefix)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_nothing_is_refused_without_the_filter(tmp_path: Path) -> None:
    answer = try_sandbox(tmp_path)
    assert (answer["found"]["name"], answer["open"], answer["workspace"]) == ("bubblewrap", 0, 1)


def test_where_user_namespaces_are_refused_landlock_protects_and_says_what_it_does_not(
    tmp_path: Path,
) -> None:
    answer = try_sandbox(tmp_path, "user-namespaces")
    found = answer["found"]
    assert (found["name"], tuple(found["gaps"])) == ("landlock", LANDLOCK_GAPS)
    assert "bwrap: No permissions to create new namespace" in found["problem"]
    assert found["advice"] == ALLOW_NAMESPACES
    assert (answer["open"], answer["workspace"]) == (0, 1)
    assert "a sealed run needs bubblewrap" in answer["sealed"]


def test_where_landlock_is_refused_too_nothing_starts_in_a_sandbox(tmp_path: Path) -> None:
    answer = try_sandbox(tmp_path, "user-namespaces", "landlock")
    assert answer["found"]["name"] == "none"
    assert "bwrap: No permissions" in answer["found"]["problem"]
    assert answer["open"] == 0
    for level in ("workspace", "sealed"):
        assert "not started: this machine cannot run a sandbox" in answer[level]
        assert ALLOW_NAMESPACES in answer[level]
        assert "choose the sandbox level open" in answer[level]


@pytest.fixture
def without_bubblewrap(server: Server) -> str:
    """Return a PATH with programs, but without bubblewrap."""
    programs = server.home.with_name("bin")  # programs in a workspace are not used
    programs.mkdir()
    for name in ("sh", "env", "cat", "git", "setpriv"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    return str(programs)


async def test_a_server_that_has_neither_starts_only_what_is_open_and_says_what_to_do(
    server: Server, without_bubblewrap: str
) -> None:
    server.set(PATH=without_bubblewrap)
    await server.kill()
    await server.start(prefix=refusing("landlock"))
    offered = await server.call("GET", "/api/sandbox")
    assert (offered["mechanism"], offered["levels"], offered["advice"]) == ("none", ["open"], INSTALL)
    await define_scripted(server)
    session = await server.new_session(agentId="scripted")
    worker = await server.worker_in(session["id"], session["workers"][0]["id"], "failed")
    assert "bubblewrap is not installed, and the kernel has no Landlock" in worker["error"]
    assert INSTALL in worker["error"]
    assert "choose the sandbox level open" in worker["error"]
    told = await SessionClient.begin(server, sandbox="open")
    await told.run_turn("[[chunk hello]]")
    assert await told.agent_text() == "hello"
    assert "Agents cannot be started: bubblewrap is not installed" in server.output()


async def test_doctor_says_in_one_line_what_this_machine_has(server: Server, without_bubblewrap: str) -> None:
    found = await Bullpen({**server.environment(), "PATH": without_bubblewrap})("doctor")
    [line] = [each for each in found.out.splitlines() if "Landlock" in each]
    assert "bubblewrap is not installed" in line
    for gap in LANDLOCK_GAPS:
        assert gap in line
    assert INSTALL in found.out
