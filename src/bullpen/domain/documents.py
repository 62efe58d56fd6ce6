"""The facts of workers that show files: what changed in a work tree, what a document says."""

from typing import Any

from .events import Fact


class DiffChanged(Fact, frozen=True, kw_only=True):
    """The changes of a work tree as they now are; `patch` is None when it is too long to be kept."""

    base: str
    files: list[dict[str, Any]]  # without their patches
    additions: int
    deletions: int
    patch: str | None = None
    note: str | None = None


class DocumentChanged(Fact, frozen=True, kw_only=True):
    """What a file says now, in its raw text; `text` is None when it cannot be shown, and `note` says why."""

    path: str
    text: str | None = None
    note: str | None = None
