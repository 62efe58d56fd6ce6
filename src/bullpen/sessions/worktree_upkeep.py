"""Recover worktrees and trash after a killed server, and delete expired worktrees from the trash."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import structlog

from .. import clock
from ..domain.errors import BullpenError, NotFound
from ..git.git_directories import GitDirectories
from .pending_worktrees import PendingWorktree, PendingWorktrees
from .trash import TrashedWorktree, WorktreeTrash
from .worktree_making import remove_incomplete_worktree

log = structlog.get_logger()

TRASH_CHECK_SECONDS = 3600.0
REPEAT_MS = 24 * 60 * 60 * 1000  # how long a client may repeat a request

T = TypeVar("T")
FindRepository = Callable[[str], Awaitable[GitDirectories]]


async def recover(
    pending_worktrees: PendingWorktrees,
    trash: WorktreeTrash,
    find_repository: FindRepository,
    require_movable: Callable[[Path], None],
) -> None:
    """Undo or finish what the previous server process was doing; failures are retried at the next start.

    `require_movable` raises Forbidden for a directory that must not be removed.
    """
    for pending in pending_worktrees.list():
        await _try(
            "an incomplete worktree could not be removed",
            pending,
            lambda item: _recover_pending(item, pending_worktrees, find_repository, require_movable),
        )
    trash.remove_empty_entries()
    for trashed in trash.list():
        await _try(
            "a removed worktree could not be recovered",
            trashed,
            lambda item: _recover_trashed(item, trash, find_repository),
        )


async def empty_trash_forever(trash: WorktreeTrash, find_repository: FindRepository) -> None:
    """Delete worktrees whose time in the trash is over, now and every hour."""
    while True:
        for trashed in trash.list():
            if trashed.expires_at <= clock.now_ms():
                await _try(
                    "a worktree in the trash could not be deleted",
                    trashed,
                    lambda item: _delete(item, trash, find_repository),
                )
        await asyncio.sleep(TRASH_CHECK_SECONDS)


async def _try(problem: str, item: T, work: Callable[[T], Awaitable[None]]) -> None:
    """Call `work` with an item; log its failure, so that the caller continues with the next item."""
    try:
        await work(item)
    except (BullpenError, OSError) as error:
        log.warning(problem, item=str(item), reason=str(error))


async def _recover_pending(
    pending: PendingWorktree,
    pending_worktrees: PendingWorktrees,
    find_repository: FindRepository,
    require_movable: Callable[[Path], None],
) -> None:
    """Remove an incomplete worktree; keep the record of a complete one while its request may be repeated."""
    if not pending.done:
        require_movable(Path(pending.path))
        await remove_incomplete_worktree(await find_repository(pending.repo_id), pending)
        log.warning("an incomplete worktree was removed", name=pending.name, path=pending.path)
    elif pending.begun_at > clock.now_ms() - REPEAT_MS:
        return
    pending_worktrees.delete(pending)


async def _recover_trashed(
    trashed: TrashedWorktree, trash: WorktreeTrash, find_repository: FindRepository
) -> None:
    """Complete or undo a move into or out of the trash that a killed server had begun."""
    await trash.recover(await find_repository(trashed.repo_id), trashed)


async def _delete(trashed: TrashedWorktree, trash: WorktreeTrash, find_repository: FindRepository) -> None:
    """Delete an expired worktree; its repository may not be registered any more."""
    try:
        repository = await find_repository(trashed.repo_id)
    except NotFound:
        repository = None
    await trash.delete(trashed, repository)
    log.info("worktree deleted from the trash", repository=trashed.repo_id, name=trashed.name)
