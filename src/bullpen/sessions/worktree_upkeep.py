"""What worktrees need without anybody asking: a killed server's halves mended, the trash emptied in time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from .. import clock
from ..domain.errors import BullpenError, NotFound
from ..git.places import GitDirectories
from .pending_worktrees import PendingWorktree, PendingWorktrees
from .trash import TrashedWorktree, WorktreeTrash
from .worktree_making import take_half_made_back

log = structlog.get_logger()

REAP_SECONDS = 3600.0
KEY_MS = 24 * 60 * 60 * 1000  # for so long a request may come again

T = TypeVar("T")
Find = Callable[[str], Awaitable[GitDirectories]]


async def mend(errands: PendingWorktrees, trash: WorktreeTrash, find: Find) -> None:
    """Takes back or finishes what the last server was doing; what cannot be mended waits for the next."""
    for errand in errands.list():
        await _each("a worktree that is half made stays", errand, lambda it: _mend_errand(it, errands, find))
    trash.sweep()
    for trashed in trash.list():
        await _each("a removed worktree cannot be mended", trashed, lambda it: _mend_trashed(it, trash, find))


async def tend(trash: WorktreeTrash, find: Find) -> None:
    """Empties the trash of what has lain there for a week, now and every hour."""
    while True:
        for trashed in trash.list():
            if trashed.expires_at <= clock.now_ms():
                await _each("the trash cannot be emptied", trashed, lambda it: _empty(it, trash, find))
        await asyncio.sleep(REAP_SECONDS)


async def _each(trouble: str, it: T, work: Callable[[T], Awaitable[None]]) -> None:
    """One that cannot be helped keeps nobody from helping the others."""
    try:
        await work(it)
    except (BullpenError, OSError) as error:
        log.warning(trouble, of=str(it), reason=str(error))


async def _mend_errand(errand: PendingWorktree, errands: PendingWorktrees, find: Find) -> None:
    if not errand.done:
        await take_half_made_back(await find(errand.repo_id), errand)
        log.warning("a worktree that was half made is taken back", name=errand.name, path=errand.path)
    elif errand.begun_at > clock.now_ms() - KEY_MS:
        return
    errands.forget(errand)


async def _mend_trashed(trashed: TrashedWorktree, trash: WorktreeTrash, find: Find) -> None:
    await trash.mend(await find(trashed.repo_id), trashed)


async def _empty(trashed: TrashedWorktree, trash: WorktreeTrash, find: Find) -> None:
    try:
        place = await find(trashed.repo_id)
    except NotFound:
        place = None
    await trash.empty(trashed, place)
    log.info("worktree gone for good", repository=trashed.repo_id, name=trashed.name)
