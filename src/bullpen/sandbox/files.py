"""Files inside a workspace, opened so that no link and no race leads out of it.

A path that is checked and then opened can be swapped between the two; here the kernel does both at once
(openat2). Where it cannot, every directory on the way is opened by itself and no link is followed at all.
"""

import ctypes
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import PurePosixPath

import structlog
from msgspec import Struct

from ..domain.errors import Forbidden, Invalid, NotFound

log = structlog.get_logger()

MAX_FILE = 64 << 20
MOST_ENTRIES = 10_000
NEW_DIRECTORY = 0o750
NEW_FILE = 0o644  # as a person's own editor would make it; our own umask is stricter

_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
# Not to hang on a FIFO, nor to make a terminal ours.
SAFELY = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

_libc = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def read_bytes(root: str, path: str) -> bytes:
    """All of a regular file inside the root."""
    with opened_root(root) as top, _told(path), _file(top, inside(root, path)) as fd:
        if os.fstat(fd).st_size > MAX_FILE:
            raise Invalid(f"{path} is larger than {MAX_FILE >> 20} MiB")
        with open(fd, "rb", closefd=False) as file:
            return file.read(MAX_FILE + 1)


class Entry(Struct, frozen=True):
    name: str
    type: str  # file, directory, link or other
    size: int


class Listing(Struct, frozen=True):
    """What is in a directory; `more` entries are left out."""

    path: str
    entries: list[Entry]
    more: int = 0


def read_any(root: str, path: str) -> bytes | Listing:
    """A regular file's bytes, or what is in a directory."""
    relative = _within(root, path)
    with opened_root(root) as top, _told(path):
        fd = open_beneath(top, relative, os.O_RDONLY | SAFELY)
        try:
            is_directory = stat.S_ISDIR(os.fstat(fd).st_mode)
        finally:
            os.close(fd)
    return list_directory(root, path) if is_directory else read_bytes(root, path)


def list_directory(root: str, path: str) -> Listing:
    """The entries of a directory inside the root, directories first."""
    relative = _within(root, path)
    with opened_root(root) as top, _told(path):
        fd = open_beneath(top, relative, os.O_RDONLY | os.O_DIRECTORY | SAFELY)
        try:
            entries = [_entry(fd, name) for name in os.listdir(fd)]
        finally:
            os.close(fd)
    entries.sort(key=lambda entry: (entry.type != "directory", entry.name))
    return Listing(relative, entries[:MOST_ENTRIES], max(0, len(entries) - MOST_ENTRIES))


def size_of(root: str, path: str) -> int:
    """How long a regular file inside the root is."""
    with opened_root(root) as top, _told(path), _file(top, inside(root, path)) as fd:
        return os.fstat(fd).st_size


def write_bytes(root: str, path: str, data: bytes, order: str | None = None) -> bool:
    """Replaces or makes a file inside the root, whole or not at all; False when it was like that before.

    `order` names what will be done again if we are killed: then nothing of the first time stays.
    """
    relative = inside(root, path)
    with opened_root(root) as top, _told(path):
        mode = NEW_FILE
        with suppress(FileNotFoundError), _file(top, relative) as fd:
            if os.fstat(fd).st_size == len(data) and _holds(fd, data):
                return False
            mode = stat.S_IMODE(os.fstat(fd).st_mode)
            relative = _real_place(root, fd, path)  # behind a link: what it points to is replaced
        with opened_parent(top, relative) as parent:
            _replace(parent, PurePosixPath(relative).name, data, mode, order or secrets.token_hex(6))
    return True


def make_directory(root: str, path: str) -> None:
    """Makes a directory inside the root, and those above it, unless it is there."""
    relative = inside(root, path)
    with opened_root(root) as top, _told(path):
        os.close(_open_or_make(top, relative))


def inside(root: str, path: str) -> str:
    """The path relative to the root; Forbidden, and logged, when it does not even look as if it lay there."""
    if "\0" in path or not path:
        raise Invalid("a file needs a path without NUL")
    relative = os.path.relpath(os.path.join(root, path), root)
    if relative == ".." or relative.startswith("../"):
        raise _escape(path)
    if relative == ".":
        raise Invalid(f"{path} is a directory")
    return relative


def _within(root: str, path: str) -> str:
    """The same, where the root itself will do."""
    return "." if path in ("", ".") else inside(root, path)


def _entry(directory: int, name: str) -> Entry:
    shown = os.fsencode(name).decode("utf-8", "replace")
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:  # gone meanwhile
        return Entry(shown, "other", 0)
    for is_type, word in ((stat.S_ISREG, "file"), (stat.S_ISDIR, "directory"), (stat.S_ISLNK, "link")):
        if is_type(found.st_mode):
            return Entry(shown, word, found.st_size)
    return Entry(shown, "other", 0)


def open_beneath(top: int, relative: str, flags: int, mode: int = 0) -> int:
    """A descriptor of something below the directory `top`; OSError EXDEV when the way leads out of it."""
    how = _OpenHow(flags, mode, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    fd: int = _libc.syscall(
        _SYS_OPENAT2, top, os.fsencode(relative), ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how))
    )
    if fd >= 0:
        return fd
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EPERM):  # an old kernel, or a filter that does not know the call
        return walk_beneath(top, relative, flags, mode)
    raise OSError(number, os.strerror(number), relative)


def walk_beneath(top: int, relative: str, flags: int, mode: int = 0) -> int:
    """The same without the kernel's help, and so without following any link."""
    *directories, name = PurePosixPath(relative).parts
    if ".." in (*directories, name):
        raise OSError(errno.EXDEV, "the way leads up", relative)
    here = os.dup(top)
    try:
        for directory in directories:
            below = os.open(directory, _DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        return os.open(name, flags | os.O_NOFOLLOW, mode, dir_fd=here)
    finally:
        os.close(here)


@contextmanager
def opened_root(root: str) -> Iterator[int]:
    try:
        fd = os.open(root, _DIRECTORY)
    except OSError:
        raise NotFound(f"the workspace {root} is gone") from None
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def _file(top: int, relative: str) -> Iterator[int]:
    fd = open_beneath(top, relative, os.O_RDONLY | SAFELY)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise Invalid(f"{relative} is not a regular file")
        yield fd
    finally:
        os.close(fd)


@contextmanager
def opened_parent(top: int, relative: str) -> Iterator[int]:
    """The directory of a file, made when it is missing."""
    directory = str(PurePosixPath(relative).parent)
    fd = os.dup(top) if directory == "." else _open_or_make(top, directory)
    try:
        yield fd
    finally:
        os.close(fd)


def _open_or_make(top: int, directory: str) -> int:
    try:
        return open_beneath(top, directory, _DIRECTORY)
    except FileNotFoundError:
        with opened_parent(top, directory) as above, suppress(FileExistsError):
            _make(above, PurePosixPath(directory).name)
        return open_beneath(top, directory, _DIRECTORY)


def _make(parent: int, name: str) -> None:
    os.mkdir(name, 0o700, dir_fd=parent)
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.fchmod(fd, NEW_DIRECTORY)  # whatever our own umask is
    finally:
        os.close(fd)


def _replace(parent: int, name: str, data: bytes, mode: int, order: str) -> None:
    temporary = f".{name[:200]}.{sha256(order.encode('utf-8', 'replace')).hexdigest()[:12]}"
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=parent)  # ours, when we were killed before the rename
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
    with open(fd, "rb", closefd=False) as file:
        return file.read(len(data) + 1) == data


def _real_place(root: str, fd: int, path: str) -> str:
    relative = os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), os.path.realpath(root))
    if relative.startswith("../"):
        raise _escape(path)
    return relative


@contextmanager
def _told(path: str) -> Iterator[None]:
    """What the kernel refuses, in our words."""
    try:
        yield
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except OSError as error:
        if error.errno in (errno.EXDEV, errno.ELOOP):
            raise _escape(path) from None
        raise Invalid(f"{path}: {error.strerror}") from None


def _escape(path: str) -> Forbidden:
    log.warning("security: path outside the workspace", path=path)
    return Forbidden(f"{path} is outside the workspace")
