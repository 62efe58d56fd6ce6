"""Read and write the files of a workspace, such that no link, race or mount leads out of it.

A path that is checked and then opened can be swapped between the two steps. Here the kernel does both at once
(openat2), and whether a file is protected is decided from the opened file, not from its path.
"""

import ctypes
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Protocol

import structlog
from msgspec import Struct

from ..domain.errors import BullpenError, Forbidden, Invalid, NotFound, Unavailable
from ..domain.failures import explain
from .protected import ProtectedPlaces

log = structlog.get_logger()

MAX_FILE_BYTES = 64 << 20
MAX_ENTRIES = 10_000
MAX_RACES = 1000  # attempts to open a path that is being renamed
NEW_DIRECTORY_MODE = 0o750
NEW_FILE_MODE = 0o644  # as the user's editor would make it; the umask of the server is stricter

_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
# Errors of a path that leads to no file inside the workspace.
_UNREACHABLE = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EACCES, errno.EXDEV, errno.ELOOP}
# Do not block on a FIFO, and do not take a terminal as controlling terminal.
SAFE_FLAGS = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

_libc = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    """The `struct open_how` of openat2."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class DirectoryEntry(Struct, frozen=True):
    """One entry of a directory."""

    name: str
    type: str  # file, directory, link or other
    size: int


class DirectoryListing(Struct, frozen=True):
    """The entries of a directory; `more` entries are left out."""

    path: str
    entries: list[DirectoryEntry]
    more: int = 0


class WorkspaceBoundary(Protocol):
    """Decides which directories are workspaces; `roots.WorkspaceRoots` implements it."""

    protected: ProtectedPlaces

    def contains(self, real: Path) -> bool:
        """Tell whether a real path lies inside a workspace root."""

    def require_inside(self, fd: int, path: str) -> None:
        """Raise Forbidden unless the opened directory lies inside a workspace root."""


class WorkspaceFiles:
    """The files of one workspace. With `secrets` also those that hold credentials of the user.

    With `protects_git`, nothing in a directory `.git` can be written: the caller is an agent in a sandbox.
    """

    def __init__(
        self, root: str, boundary: WorkspaceBoundary, *, secrets: bool = False, protects_git: bool = False
    ) -> None:
        self._protects_git = protects_git
        self.root = root
        self.boundary = boundary
        self._secrets = secrets

    def at(self, root: str) -> "WorkspaceFiles":
        """Return the files of another directory, as the same caller may see them."""
        return WorkspaceFiles(root, self.boundary, secrets=self._secrets)

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a regular file."""
        with (
            self.opened() as top,
            _translated_errors(path),
            self._file(top, relative_path(self.root, path)) as fd,
        ):
            return _read(fd, path)

    def read_any(self, path: str) -> bytes | DirectoryListing:
        """Return a regular file's bytes, or the entries of a directory, directories first.

        Raise Invalid for anything else, such as a socket.
        """
        relative = "." if path in ("", ".") else relative_path(self.root, path)
        with self.opened() as top, _translated_errors(path), self.opening(top, relative) as fd:
            mode = os.fstat(fd).st_mode
            if stat.S_ISDIR(mode):
                return self._list(fd, relative)
            if not stat.S_ISREG(mode):
                raise Invalid(f"{path} is not a regular file")
            return _read(fd, path)

    def size_of(self, path: str) -> int:
        """Return the length of a regular file."""
        with (
            self.opened() as top,
            _translated_errors(path),
            self._file(top, relative_path(self.root, path)) as fd,
        ):
            return os.fstat(fd).st_size

    def nearest_directory(self, path: str) -> str:
        """Return the real directory of a file that may not exist, or the nearest one above it that exists.

        Protected directories and links out of the workspace count as missing.
        """
        relative = relative_path(self.root, path)
        with self.opened() as top, _translated_errors(path):
            found = (self._find_directory(top, str(parent)) for parent in PurePosixPath(relative).parents)
            if directory := next(filter(None, found), None):
                return directory
        raise _protected(path)

    def has_file(self, path: str) -> bool:
        """Tell whether a path names a regular file that the caller may read."""
        try:
            self.size_of(path)
        except BullpenError:
            return False
        return True

    def is_protected(self, path: str) -> bool:
        """Tell whether a path of the workspace is, or was, a protected place; a link is not followed."""
        relative = relative_path(self.root, path)
        with self.opened() as top, _translated_errors(path):
            real = os.path.join(os.readlink(f"/proc/self/fd/{top}"), relative)
            if self.boundary.protected.is_below(real, secrets=self._secrets):
                return True
            try:
                fd = open_beneath(top, relative, os.O_PATH | os.O_NOFOLLOW)
            except OSError as error:
                if error.errno in _UNREACHABLE:
                    return False
                raise
            try:
                return self._refuses(fd)
            finally:
                os.close(fd)

    def write_bytes(self, path: str, data: bytes, request_id: str | None = None) -> bool:
        """Replace or make a file atomically; return False if it had this content already.

        `request_id` names a request that is performed again after a crash of the server: the temporary file
        of the first attempt is removed then.
        """
        relative = relative_path(self.root, path)
        with self.opened() as top, _translated_errors(path):
            mode = NEW_FILE_MODE
            with suppress(FileNotFoundError), self._file(top, relative) as fd:
                if os.fstat(fd).st_size == len(data) and _holds(fd, data):
                    return False
                mode = stat.S_IMODE(os.fstat(fd).st_mode)
                relative = _resolved_path(
                    self.root, fd, path
                )  # the target of a link is replaced, not the link
            with self.opened_parent(top, relative) as parent:
                if self._protects_git:
                    _require_outside_git(parent, PurePosixPath(relative).name, path)
                _replace(parent, PurePosixPath(relative).name, data, mode, request_id or secrets.token_hex(6))
        return True

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents, unless it exists."""
        relative = relative_path(self.root, path)
        with self.opened() as top, _translated_errors(path):
            os.close(self._open_or_make(top, relative))

    @contextmanager
    def opened(self) -> Iterator[int]:
        """Open the workspace. The opened directory is checked, so a path swapped for a link is refused."""
        try:
            fd = os.open(self.root, _DIRECTORY)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(f"the workspace {self.root} is gone") from None
        except OSError as error:
            raise _refusal(self.root, error) from None
        try:
            with _translated_errors(self.root):
                self.boundary.require_inside(fd, self.root)
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def opening(self, top: int, relative: str, flags: int = os.O_RDONLY) -> Iterator[int]:
        """Open a path below the workspace, or raise Forbidden if it is protected."""
        fd = open_beneath(top, relative, flags | (os.O_CLOEXEC if flags & os.O_PATH else SAFE_FLAGS))
        try:
            if self._refuses(fd):
                raise _protected(relative)
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def opened_parent(self, top: int, relative: str) -> Iterator[int]:
        """Open the directory of a file, made if it is missing, or raise Forbidden if it is protected."""
        directory = str(PurePosixPath(relative).parent)
        fd = os.dup(top) if directory == "." else self._open_or_make(top, directory)
        try:
            if self._refuses(fd):
                raise _protected(relative)
            yield fd
        finally:
            os.close(fd)

    def _find_directory(self, top: int, relative: str) -> str | None:
        """Return the real path of a directory below the workspace; None if there is none that may be read."""
        try:
            with self.opening(top, relative, _DIRECTORY) as fd:
                return os.readlink(f"/proc/self/fd/{fd}")
        except Forbidden:
            return None
        except OSError as error:
            if error.errno in _UNREACHABLE:
                return None
            raise

    @contextmanager
    def _file(self, top: int, relative: str) -> Iterator[int]:
        """Open a regular file below the workspace for the duration of the block; refuse anything else."""
        with self.opening(top, relative) as fd:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise Invalid(f"{relative} is not a regular file")
            yield fd

    def _list(self, fd: int, relative: str) -> DirectoryListing:
        """Return the entries of an opened directory, without protected ones."""
        found = [(name, status) for name in os.listdir(fd) if (status := _status(fd, name))]
        hidden = self.boundary.protected.hidden([status for _, status in found], secrets=self._secrets)
        entries = [_entry(*each) for each, is_hidden in zip(found, hidden, strict=True) if not is_hidden]
        entries.sort(key=lambda entry: (entry.type != "directory", entry.name))
        return DirectoryListing(relative, entries[:MAX_ENTRIES], max(0, len(entries) - MAX_ENTRIES))

    def _open_or_make(self, top: int, directory: str) -> int:
        """Open a directory below the workspace; make it and its parents if they are missing."""
        try:
            return open_beneath(top, directory, _DIRECTORY)
        except FileNotFoundError:
            with self.opened_parent(top, directory) as above, suppress(FileExistsError):
                _make(above, PurePosixPath(directory).name)
            return open_beneath(top, directory, _DIRECTORY)

    def _refuses(self, fd: int) -> bool:
        """Return whether an opened file is protected."""
        return self.boundary.protected.refuses(fd, secrets=self._secrets)


def relative_path(root: str, path: str) -> str:
    """Return a path relative to the root, or raise Forbidden if its text leads out; links are not read."""
    if "\0" in path or not path:
        raise Invalid("a file needs a path without NUL")
    relative = os.path.relpath(os.path.join(root, path), root)
    if relative == ".." or relative.startswith("../"):
        raise _escape(path)
    if relative == ".":
        raise Invalid(f"{path} is a directory")
    return relative


def _read(fd: int, path: str) -> bytes:
    """Return the content of an opened file, or raise Invalid if it is too large."""
    if os.fstat(fd).st_size > MAX_FILE_BYTES:
        raise Invalid(f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB")
    with open(fd, "rb", closefd=False) as file:
        return file.read(MAX_FILE_BYTES + 1)


def _status(directory: int, name: str) -> os.stat_result | None:
    """Return the status of an entry, or None if it was removed."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:  # removed meanwhile
        return None


def _entry(name: str, found: os.stat_result) -> DirectoryEntry:
    """Return the name, kind and size of an entry."""
    printable = os.fsencode(name).decode("utf-8", "replace")
    for is_type, kind in ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"), (stat.S_ISLNK, "link")):
        if is_type(found.st_mode):
            return DirectoryEntry(printable, kind, found.st_size)
    return DirectoryEntry(printable, "other", 0)


def open_beneath(top: int, relative: str, flags: int, mode: int = 0) -> int:
    """Open a path below the directory `top`, or raise OSError (EXDEV) if it leads out of it."""
    how = _OpenHow(flags, mode, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    name = os.fsencode(relative)
    for _ in range(MAX_RACES):
        fd: int = _libc.syscall(
            _SYS_OPENAT2, top, name, ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how))
        )
        if fd >= 0:
            return fd
        number = ctypes.get_errno()
        if number != errno.EAGAIN:  # EAGAIN: something was renamed while a `..` was followed
            break
    if number in (errno.ENOSYS, errno.EPERM):  # an old kernel, or a filter that does not know the call
        return walk_beneath(top, relative, flags, mode)
    raise OSError(number, os.strerror(number), relative)


def walk_beneath(top: int, relative: str, flags: int, mode: int = 0) -> int:
    """Open a path below the directory `top` without openat2; raise OSError for any link or `..` in it."""
    *directories, name = PurePosixPath(relative).parts or (".",)
    if ".." in (*directories, name):
        raise OSError(errno.EXDEV, "the path leads up", relative)
    current = os.dup(top)
    try:
        for directory in directories:
            below = os.open(directory, _DIRECTORY | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = below
        return os.open(name, flags | os.O_NOFOLLOW, mode, dir_fd=current)
    finally:
        os.close(current)


def _make(parent: int, name: str) -> None:
    """Make a directory with the mode of new directories."""
    os.mkdir(name, 0o700, dir_fd=parent)
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.fchmod(fd, NEW_DIRECTORY_MODE)  # independent of the umask
    finally:
        os.close(fd)


def _replace(parent: int, name: str, data: bytes, mode: int, request_id: str) -> None:
    """Write a temporary file and rename it to the name."""
    temporary = f".{name[:200]}.{sha256(request_id.encode('utf-8', 'replace')).hexdigest()[:12]}"
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=parent)  # left by a server that was killed before the rename
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o600, dir_fd=parent)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), mode)
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=parent)
        raise


def _holds(fd: int, data: bytes) -> bool:
    """Return whether the content of a file is `data`."""
    with open(fd, "rb", closefd=False) as file:
        return file.read(len(data) + 1) == data


def _require_outside_git(parent: int, name: str, path: str) -> None:
    """Raise Forbidden if a name in an opened directory is `.git` or in one, whatever link led there."""
    real = PurePosixPath(os.readlink(f"/proc/self/fd/{parent}")) / name
    if any(part.lower() == ".git" for part in real.parts):
        raise Forbidden(f"{path} belongs to git; the sandbox does not let an agent write it")


def _resolved_path(root: str, fd: int, path: str) -> str:
    """Return the real path of an opened file relative to the root, or raise Forbidden."""
    relative = os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), os.path.realpath(root))
    if relative.startswith("../"):
        raise _escape(path)
    return relative


@contextmanager
def _translated_errors(path: str) -> Iterator[None]:
    """Raise a BullpenError in place of an OSError."""
    try:
        yield
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except OSError as error:
        raise _refusal(path, error) from None


def _refusal(path: str, error: OSError) -> BullpenError:
    """Return the BullpenError for an OSError."""
    if error.errno in (errno.EXDEV, errno.ELOOP):
        return _escape(path)
    if error.errno == errno.EAGAIN:
        return Unavailable(f"{path} cannot be opened while directories on the way to it are being renamed")
    return explain(error) or Invalid(f"{path}: {error.strerror}")


def _escape(path: str) -> Forbidden:
    """Log a path that leads out of the workspace, and return the error."""
    log.warning("security: path outside the workspace", path=path)
    return Forbidden(f"{path} is outside the workspace")


def _protected(path: str) -> Forbidden:
    """Log a path of a protected file, and return the error."""
    log.warning("security: a path is protected", path=path)
    return Forbidden(f"{path} is protected: it belongs to Bullpen or holds credentials")
