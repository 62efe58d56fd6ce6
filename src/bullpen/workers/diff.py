"""Run a diff worker: it shows what has changed in its workspace since its branch left the main line."""

from collections.abc import AsyncGenerator

from msgspec import to_builtins

from ..domain.documents import DiffChanged
from ..domain.events import Fact
from ..git.watch import watch_work_tree
from ..sandbox.files import WorkspaceFiles
from .changes import WorkspaceChanges, git_directories, read_changes
from .file_watch_worker import FileWatchWorker

MAX_PATCH_LENGTH = 256 << 10  # characters of a patch that are recorded


class DiffWorker(FileWatchWorker):
    """One run of a diff worker."""

    fact_type = DiffChanged

    def changes(self) -> AsyncGenerator[None]:
        """Yield each time that files of the work tree may have changed."""
        return watch_work_tree(git_directories(self._files), self._services.roots.is_watched)

    @property
    def _files(self) -> WorkspaceFiles:
        """Return access to the files of the workspace."""
        return self._services.files(self.worker.workspace)

    async def read(self) -> Fact:
        """Return the current changes as a fact."""
        return diff_changed(await read_changes(self._files))


def diff_changed(changes: WorkspaceChanges) -> DiffChanged:
    """Return the fact that records these changes: all counts, and the patch if it is not too long."""
    patch = "".join(file.patch for file in changes.files)
    is_short = len(patch) <= MAX_PATCH_LENGTH
    files = [to_builtins(file) for file in changes.files]
    for file in files:
        del file["patch"], file["hunks"]
    return DiffChanged(
        base=changes.base,
        files=files,
        additions=changes.additions,
        deletions=changes.deletions,
        patch=patch if is_short else None,
        note=changes.note if is_short else changes.note or "the patch is too long for the time line",
    )
