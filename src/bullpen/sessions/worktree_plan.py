"""Which branch, name, start and directory a new worktree gets: asked for, or chosen so that they are free."""

import os
from pathlib import Path

from msgspec import Struct

from ..domain.errors import Conflict, Invalid, NotFound
from ..git import worktrees as git
from ..git.places import GitDirectories
from ..git.refs import MAIN, check_branch, check_name, check_revision, slug
from ..sandbox.roots import WorkspaceRoots


class NewWorktree(Struct, frozen=True, kw_only=True):
    """What a person asks for. Without a branch one is made, called after the prompt.

    `mode` is `new` (a branch that is not there yet), `existing` (one that is) or `either`.
    """

    branch: str | None = None
    base: str | None = None
    name: str | None = None
    mode: str = "new"
    prompt: str | None = None
    key: str | None = None  # what all tries of the request have in common


async def choose_names(place: GitDirectories, order: NewWorktree) -> tuple[str, str]:
    """The branch and the name; what was not given is made, and then it is free."""
    known = {each.name for each in await git.list_worktrees(place)}
    if order.name is not None:
        name = check_name(order.name)
        if name in known:
            raise Conflict(f"there is a worktree {name} already; choose another name")
    else:
        stem = slug((order.branch or "").replace("/", "-") or order.prompt or "") or "work"
        name = await _free(place, stem, known, with_branch=order.branch is None)
    return check_branch(order.branch or name), check_name(name)


async def _free(place: GitDirectories, stem: str, known: set[str], *, with_branch: bool) -> str:
    for n in range(1, 10_000):
        name = stem if n == 1 else f"{stem}-{n}"
        if (
            name not in known
            and not _taken(place, name)
            and not (with_branch and await git.branch_head(place, name))
        ):
            return name
    raise Conflict(f"there are thousands of worktrees called {stem}; give a name")


def _taken(place: GitDirectories, name: str) -> bool:
    return name == MAIN or any(os.path.lexists(path) for path in _places(place, name))


async def choose_start(place: GitDirectories, branch: str, order: NewWorktree) -> str | None:
    """The commit a new branch begins at; None when the branch is there and wanted."""
    exists = await git.branch_head(place, branch) is not None
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
            if remote := await git.remote_head(place, branch):
                return remote
            raise NotFound(f"{place.work_tree} has no branch {branch}")
        case "new" | "either":
            if (
                order.base is None
                and order.mode == "either"
                and (remote := await git.remote_head(place, branch))
            ):
                return remote
            return await git.resolve(place, check_revision(order.base or "HEAD"))
    raise Invalid(f"a worktree's mode is new, existing or either, not {order.mode}")


def _places(place: GitDirectories, name: str) -> tuple[Path, Path]:
    beside = place.work_tree.with_name(f"{place.work_tree.name}.worktrees")
    return beside / name, place.work_tree / ".worktrees" / name


def choose_path(roots: WorkspaceRoots, place: GitDirectories, name: str) -> Path:
    """Return a directory beside the repository, or inside it if beside it no session may live."""
    beside, inside = _places(place, name)
    path = beside if roots.contains(beside) else inside
    if path.parent.is_symlink() or (path.parent.exists() and not path.parent.is_dir()):
        raise Invalid(f"{path.parent} is a link or no directory, and none is followed here")
    if os.path.lexists(path):
        raise Conflict(f"{path} is there already; choose another name")
    return path
