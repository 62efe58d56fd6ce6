"""Run a document worker: it records the raw text of a Markdown file, which the client renders."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from ..domain.documents import DocumentChanged
from ..domain.errors import BullpenError, Invalid
from ..domain.events import Fact
from ..git.watch import watch_directory
from ..sandbox.files import WorkspaceFiles
from .file_watch_worker import FileWatchWorker

MAX_DOCUMENT_BYTES = 1 << 20


class MarkdownWorker(FileWatchWorker):
    """One run of a document worker."""

    fact_type = DocumentChanged

    async def changes(self) -> AsyncGenerator[None]:
        """Yield after changes of the file's directory: editors replace a file rather than write into it."""
        while True:
            directory = self._files.nearest_directory(self._path)
            async with aclosing(watch_directory(Path(directory))) as changes:
                async for _ in changes:
                    yield
                    if self._files.nearest_directory(self._path) != directory:
                        break

    async def read(self) -> Fact:
        """Return the document as a fact; if it cannot be read, with the reason as its note."""
        files, path = self._files, self._path
        try:
            if files.size_of(path) > MAX_DOCUMENT_BYTES:
                return DocumentChanged(path=path, note=f"larger than {MAX_DOCUMENT_BYTES >> 20} MiB")
            return DocumentChanged(path=path, text=files.read_bytes(path).decode("utf-8", "replace"))
        except BullpenError as error:
            return DocumentChanged(path=path, note=str(error))

    @property
    def _files(self) -> WorkspaceFiles:
        """Return access to the files of the workspace."""
        return self._services.files(self.worker.workspace)

    @property
    def _path(self) -> str:
        """Return the path of the document; raise Invalid if the worker has none."""
        if not self.worker.file_path:
            raise Invalid("a document needs the path of its file (filePath)")
        return self.worker.file_path
