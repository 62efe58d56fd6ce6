"""A run cannot lead the start of another run to a directory outside of its workspace."""

import os
from collections import Counter
from pathlib import Path

import pytest

from bullpen.domain.errors import Conflict
from bullpen.sandbox.bubblewrap import bubblewrap_command
from bullpen.sandbox.command import command_for
from support.repositories import Repo
from support.sandboxed_runs import SandboxedRuns

TRIES = 60
# Makes what looks like a submodule, and exchanges its configuration with a link to a secret, for ever.
RACER = """
import os, sys
place = ".git/modules/evil"
os.makedirs(f"{place}/objects", exist_ok=True)
open(f"{place}/HEAD", "w").close()
os.chdir(place)
print("ready", flush=True)
while True:
    try:
        with open("plain", "w") as file:
            file.write("mine")
        os.rename("plain", "config")
        os.symlink(sys.argv[1], "link")
        os.rename("link", "config")
    except OSError:
        pass
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SandboxedRuns:
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    runs = SandboxedRuns(tmp_path)
    Repo(runs.workspace)
    return runs


def test_names_that_are_exchanged_while_a_run_starts_never_lead_it_to_a_secret(runs: SandboxedRuns) -> None:
    (runs.workspace / "racer.py").write_text(RACER)
    seen: Counter[str] = Counter()
    with runs.start(["python3", "racer.py", str(runs.home / ".ssh/id_ed25519")]) as racer:
        try:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
            for _ in range(TRIES):
                try:
                    seen[runs.run("cat .git/modules/evil/config").stdout.strip()] += 1
                except Conflict:
                    seen["refused"] += 1
        finally:
            os.killpg(racer.pid, 9)
    assert set(seen) <= {"mine", "", "refused"}


def test_a_path_that_was_replaced_after_its_profile_was_planned_is_not_mounted(runs: SandboxedRuns) -> None:
    profile, argv = runs.profile(), ["cat", ".git/info/exclude"]
    info = runs.workspace / ".git/info"
    info.rename(runs.workspace / "moved")
    info.symlink_to(runs.home / ".ssh")
    with pytest.raises(Conflict, match="was changed meanwhile"):
        command_for(runs.mechanism, profile, argv, str(runs.workspace))


def test_a_path_that_is_replaced_when_bubblewrap_starts_ends_the_run(runs: SandboxedRuns) -> None:
    profile, programs = runs.profile(), runs.mechanism.programs
    assert programs is not None
    other = os.stat(runs.home / ".ssh")
    inodes = {str(runs.workspace): f"{other.st_dev}:{other.st_ino}"}
    command = bubblewrap_command(programs, profile, ["echo", "started"], str(runs.workspace), inodes)
    done = runs.execute(command)
    assert (done.returncode, done.stdout) == (126, "")
    assert "the workspace was changed while this program started" in done.stderr
