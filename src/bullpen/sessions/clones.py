"""Clone repositories in the background; a clone is complete and registered, or leaves nothing."""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

import structlog
from msgspec import Struct

from ..domain.errors import BullpenError, Conflict, NotFound
from ..domain.failures import explain
from ..domain.records import Repository
from ..git.clone import clone_repository
from ..git.marked import kill_marked
from ..git.worktrees import DIRECTORY_MODE
from ..home import write_private
from .tasks import BackgroundTasks

log = structlog.get_logger()

MAX_FINISHED = 50  # clones that are kept in memory after their end

Register = Callable[[Path], Awaitable[Repository]]


class Clone(Struct, kw_only=True, rename="camel"):
    """A clone of this server process, and how far it is; `progress` is the last line that git printed."""

    id: str
    url: str
    path: str
    state: Literal["running", "done", "failed", "cancelled"] = "running"
    progress: str = ""
    error: str | None = None
    repo_id: str | None = None


class RepositoryClones:
    """The clones that run, and those that have ended lately.

    Git writes to a hidden directory beside the target, which gets its name when the clone is complete. A file
    names that directory, so that the next server removes what a killed one has left.
    """

    def __init__(self, records: Path, tasks: BackgroundTasks, register: Register) -> None:
        """`records` is the directory of the files that name incomplete clones."""
        self._records = records
        self._tasks = tasks
        self._register = register
        self._clones: dict[str, Clone] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    def get(self, clone_id: str) -> Clone:
        """Return a clone, or raise NotFound; the server forgets its clones when it ends."""
        if clone_id not in self._clones:
            raise NotFound(f"no clone {clone_id}; a restart of the server ends a clone")
        return self._clones[clone_id]

    def start(self, clone: Clone) -> None:
        """Start to clone a checked URL."""
        for ended in [each for each in self._clones if each not in self._running][:-MAX_FINISHED]:
            del self._clones[ended]
        self._clones[clone.id] = clone
        task = self._tasks.create_task(self._run(clone), name=f"clone of {clone.url}")
        self._running[clone.id] = task
        task.add_done_callback(lambda _: self._running.pop(clone.id))

    async def cancel(self, clone_id: str) -> None:
        """End a clone and remove its files; do nothing if it has ended."""
        clone = self.get(clone_id)
        if task := self._running.get(clone_id):
            task.cancel()
            await asyncio.wait([task])
            if clone.state == "running":  # cancelled before its first step
                clone.state = "cancelled"

    async def recover(self) -> None:
        """End the clones that a killed server has left, and remove their files."""
        left = [each for each in self._records.glob("[!.]*") if each.name not in self._clones]
        for record in left:
            directory = Path(os.fsdecode(record.read_bytes()))
            await kill_marked(record.name)
            await self._discard(record, directory)
            log.warning("an incomplete clone was removed", path=str(directory))

    async def _run(self, clone: Clone) -> None:
        """Clone, register the repository, and record how that ended."""
        target = Path(clone.path)
        partial, record = target.with_name(f".{target.name}.{clone.id[:8]}.clone"), self._records / clone.id
        try:
            self._records.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(record, str(partial))
            _make(partial)
            await clone_repository(clone.url, partial, lambda line: _set_progress(clone, line), clone.id)
            _rename(partial, target)
            clone.repo_id = (await self._register(target)).id
            clone.state = "done"
            log.info("repository cloned", url=clone.url, path=clone.path)
        except asyncio.CancelledError:
            clone.state = "cancelled"
            raise
        except (BullpenError, OSError) as error:
            clone.state, clone.error = "failed", str(explain(error) or error)
            log.warning("a clone failed", url=clone.url, reason=clone.error)
        finally:
            await asyncio.shield(self._discard(record, partial))

    async def _discard(self, record: Path, directory: Path) -> None:
        """Remove the files of an incomplete clone, then the file that names them."""
        await asyncio.to_thread(_remove, directory)
        await asyncio.to_thread(record.unlink, missing_ok=True)


def require_free(target: Path) -> None:
    """Raise Conflict if a file or directory with this path exists."""
    if os.path.lexists(target):
        raise Conflict(f"{target} exists already; choose another directory, or add it as a project")


def _make(directory: Path) -> None:
    """Make the directory of a clone with the mode that git gives it."""
    directory.mkdir()
    directory.chmod(DIRECTORY_MODE)


def _rename(partial: Path, target: Path) -> None:
    """Give a complete clone its name; raise Conflict if that was taken meanwhile."""
    require_free(target)
    partial.rename(target)


def _remove(directory: Path) -> None:
    """Remove a directory with its content, if it exists."""
    with suppress(FileNotFoundError):
        shutil.rmtree(directory)


def _set_progress(clone: Clone, line: str) -> None:
    """Store a line of git as the progress of a clone."""
    clone.progress = line
