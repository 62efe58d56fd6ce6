"""List, add and discard the worktrees and branches of a repository."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ..domain.errors import Conflict, Invalid, NotFound, RemoteFault
from .git_directories import GitDirectories
from .overlays import OVERLAYS
from .refs import MAIN
from .revisions import find_commit
from .run import GitFailed, run_git
from .small_files import read_text

CHECKOUT_SECONDS = 600.0
MAX_BRANCHES = 200  # that are listed
DIRECTORY_MODE = 0o750  # as git makes it with the umask that Bullpen sets


class Worktree(Struct, frozen=True, kw_only=True):
    """One worktree of a repository; `name` is that of its directory under `.git/worktrees`, or `main`."""

    name: str
    git_dirs: GitDirectories
    branch: str | None
    head: str | None
    is_main: bool

    @property
    def path(self) -> Path:
        """The work tree."""
        return self.git_dirs.work_tree


async def list_worktrees(repository: GitDirectories) -> list[Worktree]:
    """Return all worktrees, the main one first, or raise RemoteFault if git cannot list them."""
    if not repository.common_dir.is_dir():
        raise RemoteFault(
            f"the repository {repository.work_tree} is gone: {repository.common_dir} is missing"
        )
    result = await run_git(repository, "worktree", "list", "--porcelain", "-z")
    first, *others = _records(result.output)
    names = _names(repository.common_dir)
    found = [_worktree(first, MAIN, repository, is_main=True)]
    for record in others:
        path = Path(record["worktree"])
        if name := names.get(path):
            git_dirs = _linked(repository, name, path)
            found.append(_worktree(record, name, git_dirs, is_main=False))
    return found


async def find_worktree(repository: GitDirectories, name: str) -> Worktree:
    """Return the worktree with this name, or raise NotFound."""
    for worktree in await list_worktrees(repository):
        if worktree.name == name:
            return worktree
    raise NotFound(f"{repository.work_tree} has no worktree {name}")


async def resolve_revision(repository: GitDirectories, revision: str) -> str:
    """Return the id of the commit that a revision names, or raise Invalid."""
    commit = await find_commit(repository, revision)
    if commit is None:
        raise Invalid(f"{repository.work_tree} has no commit {revision}")
    return commit


async def branch_head(repository: GitDirectories, branch: str) -> str | None:
    """Return the commit at the head of a local branch, or None if there is no such branch."""
    options = ("--verify", "--quiet")
    result = await run_git(
        repository, "rev-parse", *options, refs=[f"refs/heads/{branch}"], accept=(0, 1, 128)
    )
    return None if result.code else result.output.decode().split()[-1]


async def list_branches(repository: GitDirectories) -> list[str]:
    """Return the local and remote branches: the one that is checked out first, then the latest commits."""
    options = (
        f"--count={MAX_BRANCHES}",
        "--sort=-committerdate",
        "--format=%(HEAD)%(symref)%00%(refname:short)",
    )
    result = await run_git(repository, "for-each-ref", *options, refs=["refs/heads", "refs/remotes"])
    lines = [line.partition("\0") for line in result.output.decode("utf-8", "replace").splitlines()]
    named = [(mark, name) for mark, _, name in lines if mark in ("*", " ")]  # origin/HEAD has a target
    return [name for _, name in sorted(named, key=lambda each: each[0] != "*")]


async def remote_head(repository: GitDirectories, branch: str) -> str | None:
    """Return the commit of the remote branch with this name; None unless exactly one remote has it."""
    pattern = f"refs/remotes/*/{branch}"
    result = await run_git(repository, "for-each-ref", "--format=%(objectname)", refs=[pattern])
    heads = result.output.decode().split()
    return heads[0] if len(heads) == 1 else None


async def add_worktree(
    repository: GitDirectories,
    path: Path,
    branch: str,
    on_progress: Callable[[str], None] | None = None,
    marker: str | None = None,
) -> None:
    """Add a worktree in an empty directory, with a branch; raise Conflict if another one has the branch."""
    for other in await list_worktrees(repository):
        if other.branch == branch:
            raise Conflict(f"the branch {branch} is checked out in {other.path} already")
    _make_directory_of_worktrees(repository.common_dir)
    await run_git(
        repository,
        "worktree",
        "add",
        refs=[str(path), branch],
        timeout=CHECKOUT_SECONDS,
        writes=[repository.common_dir, path],
        on_progress=on_progress,
        marker=marker,
    )
    _separate_from_overlay(repository, path, await OVERLAYS.render_worktree_config(repository))


async def discard_worktree(repository: GitDirectories, path: Path) -> None:
    """Remove a worktree that was just made, with everything in it."""
    await run_git(
        repository,
        "worktree",
        "remove",
        "--force",
        "--force",
        refs=[str(path)],
        timeout=60,
        writes=[repository.common_dir, path.parent],
    )
    with suppress(OSError):  # other worktrees are left
        (repository.common_dir / "worktrees").rmdir()


async def create_branch(
    repository: GitDirectories, branch: str, head: str, marker: str | None = None
) -> None:
    """Make a branch at a commit, or raise Conflict if that is not possible."""
    command = f"create refs/heads/{branch}\0{head}\0"
    try:
        await run_git(
            repository,
            "update-ref",
            "--stdin",
            "-z",
            stdin=command.encode(),
            writes=[repository.common_dir],
            marker=marker,
        )
    except GitFailed as failed:
        raise Conflict(f"the branch {branch} cannot be made: {failed}") from None


async def delete_branch(repository: GitDirectories, branch: str, head: str) -> None:
    """Delete a branch, unless it is no longer at the commit `head`."""
    writes = [repository.common_dir]
    await run_git(repository, "update-ref", "-d", refs=[f"refs/heads/{branch}", head], writes=writes)


def _make_directory_of_worktrees(common_dir: Path) -> None:
    """Make `worktrees` with the mode that git gives it: the link to it in an overlay cannot dangle."""
    directory = common_dir / "worktrees"
    with suppress(FileExistsError):
        directory.mkdir()
        directory.chmod(DIRECTORY_MODE)


def _separate_from_overlay(repository: GitDirectories, path: Path, config: bytes | None) -> None:
    """Let a new worktree name its own git directory, and give it the `config.worktree` that git copies.

    Git took the overlay for the common directory and wrote its name. The file keeps its mode; a link in its
    place is not followed.
    """
    name = _names(repository.common_dir)[Path(os.path.realpath(path))]
    admin = repository.common_dir / "worktrees" / name
    flags = os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path / ".git", flags), "wb") as pointer:
        pointer.write(b"gitdir: " + os.fsencode(admin) + b"\n")
    if config is not None:
        (admin / "config.worktree").write_bytes(config)


def _worktree(record: dict[str, str], name: str, git_dirs: GitDirectories, *, is_main: bool) -> Worktree:
    """Return a worktree from a record of git's list."""
    branch = record.get("branch")
    return Worktree(
        name=name,
        git_dirs=git_dirs,
        branch=branch.removeprefix("refs/heads/") if branch else None,
        head=record.get("HEAD"),
        is_main=is_main,
    )


def _linked(repository: GitDirectories, name: str, path: Path) -> GitDirectories:
    """Return the directories of a linked worktree."""
    common = repository.common_dir
    return GitDirectories(git_dir=common / "worktrees" / name, common_dir=common, work_tree=path)


def _records(output: bytes) -> list[dict[str, str]]:
    """Parse the output of `git worktree list --porcelain -z` into one dictionary per worktree."""
    blocks = output.decode("utf-8", "surrogateescape").split("\0\0")
    lines = [[line.partition(" ") for line in block.split("\0") if line] for block in blocks]
    return [{key: value for key, _, value in block} for block in lines if block]


def _names(common_dir: Path) -> dict[Path, str]:
    """Return the name of the directory under `.git/worktrees` for each worktree path."""
    found = {}
    for pointer in (common_dir / "worktrees").glob("*/gitdir"):
        found[Path(read_text(pointer)).parent] = pointer.parent.name
    return found
