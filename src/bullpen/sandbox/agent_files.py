"""The files that an agent reads and writes through the server: its workspace, and what users have allowed."""

import os
from pathlib import Path, PurePath

from ..domain.errors import Forbidden
from ..domain.grants import GrantKind
from .files import WorkspaceFiles
from .grants import SandboxGrants
from .protected import ProtectedPlaces


class AgentFiles:
    """The files of one agent. A path outside its workspace needs a grant for the agent's repository."""

    def __init__(self, workspace: WorkspaceFiles, grants: SandboxGrants | None, repo_id: str | None) -> None:
        self._workspace = workspace
        self._protected = workspace.boundary.protected
        self._grants = grants
        self._repo_id = repo_id

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a regular file, or raise Forbidden."""
        try:
            return self._workspace.read_bytes(path)
        except Forbidden:
            granted = self._granted("read", path)
            if granted is None:
                raise
            return granted.read_bytes(self._real(path))

    def write_bytes(self, path: str, data: bytes, request_id: str) -> None:
        """Replace or make a file atomically, or raise Forbidden; see `WorkspaceFiles`."""
        try:
            self._workspace.write_bytes(path, data, request_id)
        except Forbidden:
            granted = self._granted("write", path)
            if granted is None:
                raise
            granted.write_bytes(self._real(path), data, request_id)

    def grantable(self, path: str) -> str | None:
        """Return the real path of a refused path if a grant would allow it, else None.

        A file inside the workspace is refused for another reason, and protected files are never granted.
        """
        real = self._real(path)
        is_inside = PurePath(real).is_relative_to(os.path.realpath(self._workspace.root))
        return None if is_inside or self._protected.is_below(real, secrets=False) else real

    def _real(self, path: str) -> str:
        """Return the real path of a path that may be relative to the workspace."""
        return os.path.realpath(os.path.join(self._workspace.root, path.replace("\0", "")))

    def _granted(self, kind: GrantKind, path: str) -> WorkspaceFiles | None:
        """Return the files of the granted directory, or of the directory of the granted file, or None."""
        real = self.grantable(path)
        top = self._grants.granted_path(kind, real, self._repo_id) if self._grants and real else None
        if top is None:
            return None
        directory = top if os.path.isdir(top) else os.path.dirname(top)
        return WorkspaceFiles(directory, _GrantedDirectory(directory, self._protected), protects_git=True)


class _GrantedDirectory:
    """The boundary of a granted directory; its files are protected as in a workspace."""

    def __init__(self, directory: str, protected: ProtectedPlaces) -> None:
        self._directory = directory
        self.protected = protected

    def contains(self, real: Path) -> bool:
        """Tell whether a real path lies inside the directory."""
        return real.is_relative_to(self._directory)

    def require_inside(self, fd: int, path: str) -> None:
        """Raise Forbidden unless the opened directory is the granted one and is not protected."""
        if not self.contains(Path(os.readlink(f"/proc/self/fd/{fd}"))) or self.protected.refuses(fd):
            raise Forbidden(f"{path} is not allowed any more")
