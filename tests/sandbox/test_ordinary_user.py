"""What works in the sandbox of an ordinary user only: sandboxes that a program makes for itself.

Root without capabilities cannot make them: the kernel does not let it map the id of root.
"""

import subprocess
from pathlib import Path

import pytest

from support.other_user import run_python

# Runs a script in a sandbox at a level, in a home with secrets.
DRIVER = """
import sys
from pathlib import Path
from support.sandboxed_runs import SandboxedRuns
done = SandboxedRuns(Path.home()).run(sys.argv[1], sys.argv[2])
print(done.stdout, end="")
print(done.stderr, end="", file=sys.stderr)
sys.exit(done.returncode)
"""
BROWSER = "chromium-headless-shell --disable-gpu --dump-dom"
PAGE = "data:text/html,<p></p><script>document.body.append(6*7)</script>"


def run(script: str, home: Path, level: str = "workspace") -> "subprocess.CompletedProcess[str]":
    return run_python(["-c", DRIVER, script, level], "ordinary", home)


@pytest.mark.parametrize("level", ["workspace", "sealed"])
def test_bubblewrap_can_be_used_in_the_sandbox(tmp_path: Path, level: str) -> None:
    nested = "bwrap --ro-bind / / --dev /dev --proc /proc --unshare-all --tmpfs $HOME"
    script = f"test -e ~/.agent && {nested} sh -c 'test ! -e ~/.agent && echo $$'"
    done = run(script, tmp_path, level)
    assert (done.returncode, done.stdout.strip()) == (0, "2"), done.stderr


def test_a_browser_can_use_its_own_sandbox(tmp_path: Path) -> None:
    """Without `--no-sandbox`, Chromium ends at once if it cannot make namespaces."""
    done = run(f"{BROWSER} '{PAGE}'", tmp_path)
    assert "</script>42</body>" in done.stdout, done.stderr


GIT = """
import asyncio
from pathlib import Path
from bullpen.git.changes import read_status
from bullpen.git.worktrees import create_branch
from support.git_sandbox import confined_git
from support.repositories import Repo
repo = Repo(Path.home() / "work/site")
head = repo.git("rev-parse", "HEAD").strip()
repo.write("readme.txt", "changed")
with confined_git(Path.home(), Path.home() / "work"):
    asyncio.run(create_branch(repo.git_directories, "made", head))
    print(asyncio.run(read_status(repo.git_directories)).changes, "made" in repo.git("branch"))
"""


def test_git_that_the_server_calls_works_in_its_sandbox(tmp_path: Path) -> None:
    done = run_python(["-c", GIT], "ordinary", tmp_path)
    assert done.stdout == "[(' M', 'readme.txt')] True\n", done.stderr


REMOVAL = """
import os
from pathlib import Path
from bullpen.sandbox.removing import remove_tree
kept = Path.home() / "kept"
kept.mkdir()
top = Path.home() / "tmp"
(top / "a/b").mkdir(parents=True)
(top / "a/b/file").touch()
(top / "link").symlink_to(kept)
(top / "a/b").chmod(0)
(top / "a").chmod(0o500)
remove_tree(top)
print(top.exists(), kept.exists())
"""


def test_a_run_cannot_prevent_that_its_temporary_files_are_removed(tmp_path: Path) -> None:
    done = run_python(["-c", REMOVAL], "ordinary", tmp_path)
    assert done.stdout == "False True\n", done.stderr
