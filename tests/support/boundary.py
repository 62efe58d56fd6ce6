"""A boundary for tests of files: one workspace root, and protected places."""

from collections.abc import Iterable
from pathlib import Path

from bullpen.domain.errors import Forbidden
from bullpen.sandbox.protected import ProtectedPlaces


class SingleRootBoundary:
    """Allow every path below one directory, except protected places."""

    def __init__(self, root: Path, own: Iterable[Path] = (), homes: Iterable[Path] = ()) -> None:
        self.root = root
        self.protected = ProtectedPlaces(own, homes)

    def contains(self, real: Path) -> bool:
        return real.is_relative_to(self.root)

    def require_inside(self, fd: int, path: str) -> None:
        if self.protected.refuses(fd, secrets=True):
            raise Forbidden(path)
