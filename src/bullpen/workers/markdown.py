"""Run a document worker: it records the raw text of a Markdown file, which the client renders."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from ..domain.documents import DocumentChanged
from ..domain.errors import BullpenError, Invalid
from ..domain.events import Fact
from ..git.watch import watch
from ..sandbox.files import relative_path
from .file_watch_worker import FileWatchWorker

MAX_DOCUMENT_BYTES = 1 << 20


class MarkdownWorker(FileWatchWorker):
    """One run of a document worker."""

    fact_type = DocumentChanged

    async def changes(self) -> AsyncGenerator[None]:
        """Yield after changes of the file's directory: editors replace a file rather than write into it."""
        file = Path(self.worker.workspace, relative_path(self.worker.workspace, self._path))
        while True:
            directory = _existing(file.parent)
            async with aclosing(watch([directory], lambda _: True, recursive=False)) as changes:
                async for _ in changes:
                    yield
                    if directory != file.parent and file.parent.is_dir():
                        break

    async def read(self) -> Fact:
        """Return the document as a fact; if it cannot be read, with the reason as its note."""
        files, path = self._services.files(self.worker.workspace), self._path
        try:
            if files.size_of(path) > MAX_DOCUMENT_BYTES:
                return DocumentChanged(path=path, note=f"larger than {MAX_DOCUMENT_BYTES >> 20} MiB")
            return DocumentChanged(path=path, text=files.read_bytes(path).decode("utf-8", "replace"))
        except BullpenError as error:
            return DocumentChanged(path=path, note=str(error))

    @property
    def _path(self) -> str:
        """Return the path of the document; raise Invalid if the worker has none."""
        if not self.worker.file_path:
            raise Invalid("a document needs the path of its file (filePath)")
        return self.worker.file_path


def _existing(directory: Path) -> Path:
    """Return the directory, or the nearest existing one above it: the document may be created later."""
    return next(path for path in (directory, *directory.parents) if path.is_dir())
