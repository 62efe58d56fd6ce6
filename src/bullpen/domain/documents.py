"""The facts of workers that show files: the changes of a work tree, and the text of a document."""

from typing import Any

from .events import Fact


class DiffChanged(Fact, frozen=True, kw_only=True):
    """The current changes of a work tree. `patch` is None if it is too long to be stored."""

    base: str
    files: list[dict[str, Any]]  # without their patches
    additions: int
    deletions: int
    patch: str | None = None
    note: str | None = None


class DocumentChanged(Fact, frozen=True, kw_only=True):
    """The current text of a file. If it cannot be shown, `text` is None and `note` says why."""

    path: str
    text: str | None = None
    note: str | None = None
