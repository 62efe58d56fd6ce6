"""Makes one worktree whole or not at all, and takes back what a failure or a killed server left of one."""

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
from ..git.places import GitDirectories
from ..git.process import end_marked
from ..git.worktrees import Worktree
from .pending_worktrees import PendingWorktree, PendingWorktrees

log = structlog.get_logger()


class CreatedWorktree(Struct, frozen=True, kw_only=True):
    """A new worktree, and what it was made for."""

    worktree: Worktree
    errand: PendingWorktree
    copied: list[str]


async def make_worktree(
    place: GitDirectories,
    errand: PendingWorktree,
    errands: PendingWorktrees,
    furnish: Callable[[Path], Awaitable[list[str]]],
    on_progress: Callable[[str], None],
) -> CreatedWorktree:
    """Each step is noted before the next, so that a failure takes back what was made, and only that."""
    path = Path(errand.path)
    async with AsyncExitStack() as undo:
        errands.note(errand)
        undo.callback(errands.forget, errand)
        if errand.start:
            await git.create_branch(place, errand.branch, errand.start, marker=errand.id)
            undo.push_async_callback(_take_branch_back, place, errand.branch, errand.start)
        _make_directories(undo, place, path)
        undo.push_async_callback(_take_directory_back, place, path)
        await git.add_worktree(place, path, errand.branch, on_progress, marker=errand.id)
        worktree = await git.find_worktree(place, errand.name)
        copied = await furnish(path)
        errands.note(replace(errand, done=True))
        undo.pop_all()
    return CreatedWorktree(worktree=worktree, errand=errand, copied=copied)


async def take_back(place: GitDirectories, made: CreatedWorktree) -> None:
    """Undoes `make_worktree`, because what it was made for failed."""
    await _take_directory_back(place, made.worktree.path)
    if made.errand.start:
        await _take_branch_back(place, made.errand.branch, made.errand.start)


async def take_half_made_back(place: GitDirectories, errand: PendingWorktree) -> None:
    """What a killed server left; a directory git knows nothing of is removed only when it is empty."""
    path = Path(errand.path)
    await end_marked(errand.id)
    if errand.start and await git.branch_head(place, errand.branch) not in (None, errand.start):
        log.warning("somebody went on with a worktree that was half made", path=errand.path)
        return
    if any(each.path == path for each in await git.list_worktrees(place)):
        await _take_directory_back(place, path)
    admin = place.common_dir / "worktrees" / errand.name
    if admin.is_dir() and not (admin / "gitdir").exists():  # git was killed before it had written that
        await asyncio.to_thread(shutil.rmtree, admin)
    _remove_empty(path)
    _remove_empty(path.parent)
    if errand.start:
        await _take_branch_back(place, errand.branch, errand.start)


def _make_directories(undo: AsyncExitStack, place: GitDirectories, path: Path) -> None:
    """The worktree's own directory and the one around it, with mode 0750 (R60) whatever our umask is."""
    if not path.parent.exists():
        path.parent.mkdir()
        path.parent.chmod(0o750)
        undo.callback(_remove_empty, path.parent)
    if path.parent.parent == place.work_tree:
        _exclude(place.common_dir / "info" / "exclude", f"/{path.parent.name}/")
    try:
        path.mkdir()  # what is made here is ours, and so may be taken back
    except FileExistsError:
        raise Conflict(f"{path} is there already; choose another name") from None
    path.chmod(0o750)


def _exclude(file: Path, line: str) -> None:
    """So that the repository does not see its own worktrees as new files."""
    file.parent.mkdir(exist_ok=True)
    text = file.read_text() if file.exists() else ""
    if line not in text.splitlines():
        file.write_text(text + ("" if text.endswith("\n") or not text else "\n") + line + "\n")


def _remove_empty(directory: Path) -> None:
    try:
        directory.rmdir()
    except OSError:
        return  # somebody put something there meanwhile, or it was never made


async def _take_directory_back(place: GitDirectories, path: Path) -> None:
    """Removes a worktree that a failed step left; it was ours alone."""
    known = [each for each in await git.list_worktrees(place) if each.path == path]
    try:
        if known:
            await git.discard_worktree(place, path)
    except BullpenError as error:
        log.warning("git cannot take a worktree back", path=str(path), reason=str(error))
        await asyncio.to_thread(shutil.rmtree, known[0].place.git_dir, ignore_errors=True)
    await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)


async def _take_branch_back(place: GitDirectories, branch: str, start: str) -> None:
    if await git.branch_head(place, branch) == start:
        await git.delete_branch(place, branch, start)
