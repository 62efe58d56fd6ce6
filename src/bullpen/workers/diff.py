"""A worker that shows what has changed in its workspace since its branch left the main line (R83)."""

from collections.abc import AsyncGenerator

from msgspec import to_builtins

from ..domain.documents import DiffChanged
from ..domain.events import Fact
from ..git.watch import watch_work_tree
from ..sandbox.files import WorkspaceFiles
from .changes import WorkspaceChanges, place_of, read_changes
from .file_watch_worker import FileWatchWorker

MOST_KEPT = 256 << 10  # characters of a patch that the time line keeps


class DiffWorker(FileWatchWorker):
    tells = DiffChanged

    def changes(self) -> AsyncGenerator[None]:
        return watch_work_tree(place_of(self._files), self._workshop.roots.is_watched)

    @property
    def _files(self) -> WorkspaceFiles:
        return self._workshop.files(self.worker.workspace)

    async def look(self) -> Fact:
        return diff_changed(await read_changes(self._files))


def diff_changed(changes: WorkspaceChanges) -> DiffChanged:
    """The fact of what is changed now: all counts, and the patch when it is not too long."""
    patch = "".join(file.patch for file in changes.files)
    kept = len(patch) <= MOST_KEPT
    files = [to_builtins(file) for file in changes.files]
    for file in files:
        del file["patch"], file["hunks"]
    return DiffChanged(
        base=changes.base,
        files=files,
        additions=changes.additions,
        deletions=changes.deletions,
        patch=patch if kept else None,
        note=changes.note if kept else changes.note or "the patch is too long for the time line",
    )
