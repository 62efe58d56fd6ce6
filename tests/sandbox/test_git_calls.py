"""Git that the server calls sees its repository and nothing else of the user, even if git itself is hostile.

`tests/git` shows that git runs no program of a repository. Here another program stands in the place of git,
as if a repository had taken git over by an error in git.
"""

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bullpen.domain.errors import RemoteFault
from bullpen.git.anchors import add_refs, remove_refs
from bullpen.git.changes import read_status
from bullpen.git.clone import clone_repository
from bullpen.git.command import CONFINEMENT
from bullpen.git.git_directories import GitDirectories
from bullpen.git.revisions import find_commit
from bullpen.git.run import run_git
from bullpen.git.worktrees import (
    add_worktree,
    create_branch,
    delete_branch,
    discard_worktree,
    find_worktree,
)
from support.git_http_server import git_http_server
from support.git_sandbox import confined_git
from support.repositories import Repo
from support.server import Server


class Hostile:
    """A repository and a neighbour of it in a home with secrets, and a program in the place of git."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / ".local/share/bullpen"
        self.other = Repo(home / "work/other")
        self.repo = Repo(home / "work/mine")
        for path in (self.data / "token", home / ".ssh/id_ed25519"):
            path.parent.mkdir(parents=True)
            path.write_text("secret")

    async def run(self, script: str, writes: tuple[Path, ...] = ()) -> str:
        """Run a script in the place of git; return what it prints, and its errors."""
        program = self.home / "bin" / "git"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\ncase "$*" in *--list*) exit;; esac\n(\n{script}\n) 2>&1\nexit 0\n')
        program.chmod(0o755)
        before = os.environ["PATH"]
        os.environ["PATH"] = f"{program.parent}:{before}"
        try:
            ended = await run_git(self.repo.git_directories, "status", writes=writes)
        finally:
            os.environ["PATH"] = before
        return ended.output.decode()


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hostile]:
    home = tmp_path / "ada"
    monkeypatch.setenv("HOME", str(home))
    hostile = Hostile(home)
    with confined_git(home, home / "work", data=hostile.data):
        yield hostile


@contextmanager
def unconfined() -> Iterator[None]:
    wrap, CONFINEMENT.wrap = CONFINEMENT.wrap, None
    yield
    CONFINEMENT.wrap = wrap


READS: dict[str, Callable[[Hostile], str]] = {
    "the owner's token": lambda hostile: f"cat {hostile.data}/token",
    "a key of the user": lambda hostile: f"cat {hostile.home}/.ssh/id_ed25519",
    "another repository": lambda hostile: f"cat {hostile.other.path}/readme.txt",
    "the environment of a process": lambda _: f"head -c 1 /proc/{os.getpid()}/environ",
    "a process": lambda _: f"kill -0 {os.getpid()}",
    "the terminal of the server": lambda _: "test -e /dev/tty",
}


@pytest.mark.parametrize("what", READS)
async def test_a_call_of_git_does_not_reach(hostile: Hostile, what: str) -> None:
    script = f"{READS[what](hostile)} >/dev/null && echo reached"
    with unconfined():
        assert "reached" in await hostile.run(script), "what is impossible without a sandbox proves nothing"
    assert "reached" not in await hostile.run(script)


async def test_a_call_of_git_has_no_network(hostile: Hostile) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        script = f'bash -c "echo >/dev/tcp/127.0.0.1/{port} && echo reached"'
        with unconfined():
            assert "reached" in await hostile.run(script)
        assert "reached" not in await hostile.run(script)


async def test_a_call_that_reads_writes_nothing_and_another_only_what_it_must(hostile: Hostile) -> None:
    repo = hostile.repo
    places = {name: repo.git_dir / f"{name}.new" for name in ("refs/heads/x", "config", "../file")}
    script = "\n".join(f"touch {path}" for path in places.values())
    output = await hostile.run(script)
    assert output.count("Read-only file system") == len(places)
    await hostile.run(script, writes=(repo.git_dir / "refs",))
    assert {name for name, path in places.items() if path.exists()} == {"refs/heads/x"}


async def test_a_call_reads_its_repository_and_the_patterns_of_the_user(hostile: Hostile) -> None:
    patterns = hostile.home / "dotfiles/ignored"
    patterns.parent.mkdir()
    patterns.write_text("*.log\n")
    (hostile.home / ".config/git").mkdir(parents=True)
    (hostile.home / ".config/git/attributes").write_text("*.txt text eol=crlf\n")
    (hostile.home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/dotfiles/ignored\n")
    for name in ("a.log", "b.new"):
        hostile.repo.write(name, "x")
    assert (await read_status(hostile.repo.git_directories)).changes == [("??", "b.new")]


async def test_a_repository_with_objects_of_another_one_is_read(hostile: Hostile) -> None:
    shared = hostile.home / "work/shared"
    hostile.repo.git("clone", "-q", "--shared", str(hostile.other.path), str(shared))
    place = GitDirectories.main(shared / ".git", shared)
    assert (await read_status(place)).changes == []
    assert await find_commit(place, "HEAD")


async def test_a_run_cannot_show_git_a_directory_by_naming_it_as_objects(hostile: Hostile) -> None:
    """A run can write the file in which git looks for the objects of other repositories."""
    alternates = hostile.repo.git_dir / "objects/info/alternates"
    (hostile.home / "objects").symlink_to(hostile.home / ".ssh")
    alternates.write_text(f"{hostile.home}/.ssh\n{hostile.home}/objects\n\0\n{hostile.home}\n")
    assert "secret" not in await hostile.run(f"cat {hostile.home}/.ssh/id_ed25519")
    alternates.unlink()
    os.mkfifo(alternates)  # the server does not wait for its writer
    assert await hostile.run("echo done") == "done\n"


async def test_a_work_tree_that_is_reached_through_a_link_works(hostile: Hostile) -> None:
    link = hostile.home / "link"
    link.symlink_to(hostile.home / "work")
    place = GitDirectories.main(link / "mine/.git", link / "mine")
    assert (await read_status(place)).changes == []
    await create_branch(place, "made", hostile.repo.git("rev-parse", "HEAD").strip())
    assert "made" in hostile.repo.git("branch")


async def test_calls_write_objects_refs_and_worktrees(hostile: Hostile) -> None:
    repo, path = hostile.repo.git_directories, hostile.home / "work/linked"
    head = hostile.repo.git("rev-parse", "HEAD").strip()
    await create_branch(repo, "topic", head)
    path.mkdir()
    await add_worktree(repo, path, "topic")
    linked = (await find_worktree(repo, "linked")).git_dirs
    await add_refs(linked, head, "id")  # to the commit, and to a new tree of all that is in the index
    assert hostile.repo.git("ls-tree", "-r", "refs/bullpen/trash/id/index").split()[2] in head_objects(
        hostile
    )
    await remove_refs(repo, "id")
    await discard_worktree(repo, path)
    await delete_branch(repo, "topic", head)
    assert hostile.repo.git("for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]
    assert not path.exists()


def head_objects(hostile: Hostile) -> list[str]:
    """Return the objects of the files in the last commit."""
    return hostile.repo.git("ls-tree", "-r", "HEAD").split()


async def test_a_sandbox_that_cannot_start_is_an_error_and_not_an_answer_of_git(
    hostile: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`rev-parse` ends with 1 if there is no such commit; so does bubblewrap if it cannot make a mount."""
    monkeypatch.setattr("bullpen.sandbox.bubblewrap._DEVICES_OF_GIT", ("/nothing",))
    with pytest.raises(RemoteFault, match="cannot be started in its sandbox: bwrap: Can't find source path"):
        await find_commit(hostile.repo.git_directories, "HEAD")


async def test_a_clone_over_http_writes_its_directory_and_nothing_else(hostile: Hostile) -> None:
    target = hostile.home / "work/clone"
    target.mkdir()
    with git_http_server(hostile.home / "remote") as remote:
        await clone_repository(f"{remote.url}/project.git", target, lambda _: None, "marker")
    assert (target / "readme.txt").read_text() == "hello\n"
    assert sorted(os.listdir(target.parent)) == ["clone", "mine", "other"]


@pytest.mark.parametrize("level", ["workspace", "open"])
async def test_a_server_calls_git_in_a_sandbox_unless_its_owner_has_set_open(
    server: Server, level: str
) -> None:
    repo = Repo(server.workspace / "site")
    program = server.home.parent / "bin/git"
    program.parent.mkdir()
    look = f"test -e {server.home}/bullpen.db && touch {repo.path}/seen"
    program.write_text(f'#!/bin/sh\n{look}\nexec {shutil.which("git")} "$@"\n')
    program.chmod(0o755)
    server.set(PATH=f"{program.parent}:{os.environ['PATH']}", BULLPEN_SANDBOX=level)
    await server.restart()
    session = await server.new_session(locationPath=str(repo.path))
    repo.write("readme.txt", "changed\n")
    changed = await server.call("GET", f"/api/sessions/{session['id']}/diff")
    seen = {"seen"} if level == "open" else set()
    assert {each["path"] for each in changed["files"]} - seen == {"readme.txt"}
    assert (repo.path / "seen").exists() == (level == "open")
