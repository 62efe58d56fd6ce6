"""Create one worktree completely or not at all, and remove what a failure or a killed server left of it."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import structlog
from msgspec import Struct
from msgspec.structs import replace

from ..domain.errors import BullpenError, Conflict
from ..git import worktrees as git
from ..git.git_directories import GitDirectories
from ..git.marked import kill_marked
from ..git.worktrees import Worktree
from .pending_worktrees import PendingWorktree, PendingWorktrees

log = structlog.get_logger()


class CreatedWorktree(Struct, frozen=True, kw_only=True):
    """A new worktree with the record of its pending creation and the files copied into it."""

    worktree: Worktree
    pending: PendingWorktree
    copied: list[str]


async def make_worktree(
    git_dirs: GitDirectories,
    pending: PendingWorktree,
    pending_worktrees: PendingWorktrees,
    set_up: Callable[[Path], Awaitable[list[str]]],
    on_progress: Callable[[str], None],
) -> CreatedWorktree:
    """Create a branch and a worktree, then call `set_up`. On failure, undo the finished steps."""
    path = Path(pending.path)
    async with AsyncExitStack() as undo:
        pending_worktrees.save(pending)
        undo.callback(pending_worktrees.delete, pending)
        if pending.start:
            await git.create_branch(git_dirs, pending.branch, pending.start, marker=pending.id)
            undo.push_async_callback(_delete_branch, git_dirs, pending.branch, pending.start)
        _make_directories(undo, git_dirs, path)
        undo.push_async_callback(_delete_work_tree, git_dirs, path)
        await git.add_worktree(git_dirs, path, pending.branch, on_progress, marker=pending.id)
        worktree = await git.find_worktree(git_dirs, pending.name)
        copied = await set_up(path)
        pending_worktrees.save(replace(pending, done=True))
        undo.pop_all()
    return CreatedWorktree(worktree=worktree, pending=pending, copied=copied)


async def undo_make(git_dirs: GitDirectories, made: CreatedWorktree) -> None:
    """Undo `make_worktree`, because the request it was made for failed."""
    await _delete_work_tree(git_dirs, made.worktree.path)
    if made.pending.start:
        await _delete_branch(git_dirs, made.pending.branch, made.pending.start)


async def remove_incomplete_worktree(git_dirs: GitDirectories, pending: PendingWorktree) -> None:
    """Remove what a killed server left of a worktree, unless its branch has new commits.

    A directory that git does not list as a worktree is only removed if it is empty.
    """
    path = Path(pending.path)
    await kill_marked(pending.id)
    if pending.start and await git.branch_head(git_dirs, pending.branch) not in (None, pending.start):
        log.warning("an incomplete worktree stays, because its branch has new commits", path=pending.path)
        return
    if any(each.path == path for each in await git.list_worktrees(git_dirs)):
        await _delete_work_tree(git_dirs, path)
    admin = git_dirs.common_dir / "worktrees" / pending.name
    if admin.is_dir() and not (admin / "gitdir").exists():  # git was killed before it wrote this file
        await asyncio.to_thread(shutil.rmtree, admin)
    _remove_empty(path)
    _remove_empty(path.parent)
    if pending.start:
        await _delete_branch(git_dirs, pending.branch, pending.start)


def _make_directories(undo: AsyncExitStack, git_dirs: GitDirectories, path: Path) -> None:
    """Create the directory of the worktree, and its parent if needed, with mode 0750 for any umask.

    Exclude the parent from git's status if it is in the repository. Raise Conflict if the directory exists.
    """
    if not path.parent.exists():
        path.parent.mkdir()
        path.parent.chmod(0o750)
        undo.callback(_remove_empty, path.parent)
    if path.parent.parent == git_dirs.work_tree:
        _exclude(git_dirs.common_dir / "info" / "exclude", f"/{path.parent.name}/")
    try:
        path.mkdir()  # only a directory created here may be removed on failure
    except FileExistsError:
        raise Conflict(f"{path} exists already; choose another name") from None
    path.chmod(0o750)


def _exclude(file: Path, line: str) -> None:
    """Add a line to git's exclude file, so that the repository does not list its worktrees as new files."""
    file.parent.mkdir(exist_ok=True)
    text = file.read_text() if file.exists() else ""
    if line not in text.splitlines():
        file.write_text(text + ("" if text.endswith("\n") or not text else "\n") + line + "\n")


def _remove_empty(directory: Path) -> None:
    """Remove a directory if it is empty."""
    try:
        directory.rmdir()
    except OSError:
        return  # it has files, or was never created


async def _delete_work_tree(git_dirs: GitDirectories, path: Path) -> None:
    """Remove the directory of a worktree that was not completed."""
    known = [each for each in await git.list_worktrees(git_dirs) if each.path == path]
    try:
        if known:
            await git.discard_worktree(git_dirs, path)
    except BullpenError as error:
        log.warning("git could not remove an incomplete worktree", path=str(path), reason=str(error))
        await asyncio.to_thread(shutil.rmtree, known[0].git_dirs.git_dir, ignore_errors=True)
    await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)


async def _delete_branch(git_dirs: GitDirectories, branch: str, start: str) -> None:
    """Delete the branch if it still points to the commit it was created at."""
    if await git.branch_head(git_dirs, branch) == start:
        await git.delete_branch(git_dirs, branch, start)
