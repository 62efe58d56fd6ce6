"""A worker that shows a document as it is now: its raw text, which the reader's side renders."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from ..domain.documents import DocumentChanged
from ..domain.errors import BullpenError, Invalid
from ..domain.events import Fact
from ..git.watch import watch
from ..sandbox.files import inside
from .file_watch_worker import FileWatchWorker

MOST_SHOWN = 1 << 20  # bytes


class MarkdownWorker(FileWatchWorker):
    tells = DocumentChanged

    async def changes(self) -> AsyncGenerator[None]:
        """Of its directory: editors replace a file rather than write into it."""
        file = Path(self.worker.workspace, inside(self.worker.workspace, self._path))
        while True:
            directory = _existing(file.parent)
            async with aclosing(watch([directory], lambda _: True, recursive=False)) as changes:
                async for _ in changes:
                    yield
                    if directory != file.parent and file.parent.is_dir():
                        break

    async def look(self) -> Fact:
        files, path = self._workshop.files(self.worker.workspace), self._path
        try:
            if files.size_of(path) > MOST_SHOWN:
                return DocumentChanged(path=path, note=f"larger than {MOST_SHOWN >> 20} MiB")
            return DocumentChanged(path=path, text=files.read_bytes(path).decode("utf-8", "replace"))
        except BullpenError as error:
            return DocumentChanged(path=path, note=str(error))

    @property
    def _path(self) -> str:
        if not self.worker.file_path:
            raise Invalid("a document needs the path of its file (filePath)")
        return self.worker.file_path


def _existing(directory: Path) -> Path:
    """The directory, or the nearest one above it: the document may come later."""
    return next(path for path in (directory, *directory.parents) if path.is_dir())
