"""Choose the branch, name, start commit and directory of a new worktree."""

import os
from pathlib import Path

from msgspec import Struct

from ..domain.errors import Conflict, Invalid, NotFound
from ..git import worktrees as git
from ..git.git_directories import GitDirectories
from ..git.refs import MAIN, check_branch, check_name, check_revision, slug
from ..sandbox.roots import WorkspaceRoots


class NewWorktree(Struct, frozen=True, kw_only=True):
    """A request for a new worktree. Without a branch, a new one is named after the prompt.

    `mode` tells whether the branch must be `new`, must be `existing`, or may be `either`.
    """

    branch: str | None = None
    base: str | None = None
    name: str | None = None
    mode: str = "new"
    prompt: str | None = None
    key: str | None = None  # the idempotency key of the request


async def choose_names(git_dirs: GitDirectories, order: NewWorktree) -> tuple[str, str]:
    """Return the branch and the name of a new worktree; choose an unused one where none was requested.

    Raise Conflict if the requested name is in use.
    """
    known = {each.name for each in await git.list_worktrees(git_dirs)}
    if order.name is not None:
        name = check_name(order.name)
        if name in known:
            raise Conflict(f"a worktree {name} exists already; choose another name")
    else:
        stem = slug((order.branch or "").replace("/", "-") or order.prompt or "") or "work"
        name = await _choose_free_name(git_dirs, stem, known, with_branch=order.branch is None)
    return check_branch(order.branch or name), check_name(name)


async def _choose_free_name(
    git_dirs: GitDirectories, stem: str, known: set[str], *, with_branch: bool
) -> str:
    """Return `stem`, or the first of `stem-2`, `stem-3` … that no worktree (nor branch) has.

    Raise Conflict if thousands are taken.
    """
    for n in range(1, 10_000):
        name = stem if n == 1 else f"{stem}-{n}"
        if (
            name not in known
            and not _is_name_used(git_dirs, name)
            and not (with_branch and await git.branch_head(git_dirs, name))
        ):
            return name
    raise Conflict(f"there are thousands of worktrees named {stem}; give another name")


def _is_name_used(git_dirs: GitDirectories, name: str) -> bool:
    """Return whether the name is reserved, or a file exists where its worktree would be."""
    return name == MAIN or any(os.path.lexists(path) for path in _candidate_paths(git_dirs, name))


async def choose_start(git_dirs: GitDirectories, branch: str, order: NewWorktree) -> str | None:
    """Return the commit at which to create the branch; None if the branch exists and is to be used.

    The commit is the requested base, a remote branch of the same name, or HEAD. Raise Conflict, Invalid or
    NotFound if the mode does not fit the branches that exist.
    """
    exists = await git.branch_head(git_dirs, branch) is not None
    match order.mode:
        case "new" if exists:
            raise Conflict(
                f"the branch {branch} exists already; ask for the existing one, or choose another name"
            )
        case "existing" | "either" if exists:
            if order.base:
                raise Invalid(f"the branch {branch} exists; a base is for a new branch")
            return None
        case "existing":
            if remote := await git.remote_head(git_dirs, branch):
                return remote
            raise NotFound(f"{git_dirs.work_tree} has no branch {branch}")
        case "new" | "either":
            if (
                order.base is None
                and order.mode == "either"
                and (remote := await git.remote_head(git_dirs, branch))
            ):
                return remote
            return await git.resolve_revision(git_dirs, check_revision(order.base or "HEAD"))
    raise Invalid(f"a worktree's mode is new, existing or either, not {order.mode}")


def _candidate_paths(git_dirs: GitDirectories, name: str) -> tuple[Path, Path]:
    """Return the possible directories of a worktree: beside the repository, and inside it."""
    beside = git_dirs.work_tree.with_name(f"{git_dirs.work_tree.name}.worktrees")
    return beside / name, git_dirs.work_tree / ".worktrees" / name


def choose_path(roots: WorkspaceRoots, git_dirs: GitDirectories, name: str) -> Path:
    """Return a new directory beside the repository; inside it if sessions are not allowed beside it.

    Raise Conflict if the directory exists.
    """
    beside, inside = _candidate_paths(git_dirs, name)
    path = beside if roots.contains(beside) else inside
    if path.parent.is_symlink() or (path.parent.exists() and not path.parent.is_dir()):
        raise Invalid(f"{path.parent} is a link or not a directory; links are not followed here")
    if os.path.lexists(path):
        raise Conflict(f"{path} exists already; choose another name")
    return path
