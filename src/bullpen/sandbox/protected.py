"""Decide whether an opened file or directory belongs to Bullpen itself or holds credentials of the user.

Files are compared by device and inode, so a symbolic link, a hard link, a bind mount or another spelling of
the path does not get around the check. Every reader of workspace files calls `ProtectedPlaces.refuses`.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from .. import clock
from ..config import Config, config_file
from .root_rules import homes

# Places below a home directory that hold credentials. Only an administrator is served what is in them.
SECRET_PLACES = (
    ".ssh",
    ".gnupg",
    ".password-store",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/github-copilot",
    ".config/google-chrome",
    ".config/chromium",
    ".mozilla",
    ".local/share/keyrings",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".vault-token",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".terraform.d/credentials.tfrc.json",
    ".claude/.credentials.json",
    ".claude.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".gemini/google_accounts.json",
    ".local/share/opencode/auth.json",
)

MAX_INDEX_AGE = 1.0  # seconds for which the inodes below a place are not read again
CLOCK_STEP = 100_000_000  # nanoseconds by which the kernel's timestamps of files may be late
# A path with one of these errors leads to nothing that the server could read by this path.
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES, errno.EPERM})
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC

Inode = tuple[int, int]  # device and number, which identify a file under any name


class ProtectedPlaces:
    """The files of Bullpen, refused to all callers, and credentials, refused to scopes below `admin`."""

    def __init__(self, own: Iterable[Path], homes: Iterable[Path]) -> None:
        """`own` are Bullpen's files and directories; `homes` are searched for `SECRET_PLACES`."""
        self._own = _PathSet(own)
        self._secret = _PathSet(home / place for home in homes for place in SECRET_PLACES)

    def refuses(self, fd: int, *, secrets: bool = False) -> bool:
        """Tell whether the opened file or directory is protected. `secrets`: the caller may read secrets."""
        chain = list(_chain(fd))
        if not chain:
            return True
        return self._own.holds(fd, chain) or (not secrets and self._secret.holds(fd, chain))

    def is_below(self, path: str, *, secrets: bool = True) -> bool:
        """Tell by its name whether a real path is in a place, for what cannot be opened: it may be gone."""
        return self._own.is_below(path) or (not secrets and self._secret.is_below(path))

    def overlaps(self, path: Path) -> bool:
        """Tell whether a real path is, contains or lies in a place of Bullpen; the path may not exist yet."""
        existing = next(each for each in (path, *path.parents) if os.path.exists(each))
        fd = os.open(existing, os.O_PATH | os.O_CLOEXEC)
        try:
            return self.refuses(fd, secrets=True) or (existing == path and self._own.is_inside(fd))
        finally:
            os.close(fd)

    def places_below(self, directory: str) -> list[str]:
        """Return the real paths of all places in a directory, relative to it."""
        paths = (*self._own.real_paths, *self._secret.real_paths)
        return [os.path.relpath(path, directory) for path in paths if path.startswith(f"{directory}/")]

    def hidden(self, entries: Sequence[os.stat_result], *, secrets: bool = False) -> list[bool]:
        """Tell for each entry of a directory that is not refused itself whether the entry is protected."""
        inodes = self._own.among(entries) | (frozenset() if secrets else self._secret.among(entries))
        return [_inode(entry) in inodes for entry in entries]


def protected_places(config: Config) -> ProtectedPlaces:
    """Return the protected places of a server with these settings."""
    return ProtectedPlaces(own_places(config), homes())


def own_places(config: Config) -> list[Path]:
    """Return the files and directories of Bullpen: data, configuration, and what the settings name."""
    database = config.database_url.removeprefix("sqlite:///")
    files = [database, f"{database}-wal", f"{database}-shm"] if database != config.database_url else []
    own = (config.home, config_file(os.environ).parent, config.tls_key, *map(Path, files))
    return [path for path in own if path is not None]


class _InodeIndex(NamedTuple):
    """The inodes below some places, and when they were read, as durations count and as files are dated."""

    inodes: frozenset[Inode]
    read_at: float
    read_at_ns: int


class _PathSet:
    """A set of files and directories, which may not exist yet. Opened files are compared with it by inode."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(map(str, paths))
        self.real_paths = tuple(map(os.path.realpath, self._paths))
        self._index = _InodeIndex(frozenset(), -MAX_INDEX_AGE, 0)

    def holds(self, fd: int, chain: list[os.stat_result]) -> bool:
        """Tell whether an opened file is in a place; `chain` is the file and the directories above it.

        A place in the chain shows that. A hard link or a bind mount shows it only by the inodes below the
        places, which are then read.
        """
        inodes, mounts = {_inode(status) for status in chain}, self._mounts()
        if not inodes.isdisjoint(mounts):
            return True
        same_device = {mount for (device, _), mount in mounts.items() if device == chain[0].st_dev}
        # The chain does not show two ways to a protected file: another hard link, and a bind mount.
        may_hide = _has_more_names(chain[0]) or _mount(fd) not in same_device
        return bool(same_device) and may_hide and not inodes.isdisjoint(self._inodes_below(chain[:1]))

    def is_inside(self, directory: int) -> bool:
        """Return whether one of the places is inside an opened directory."""
        inode = _inode(os.fstat(directory))
        return any(inode in map(_inode, _chain(place)) for place in self._opened())

    def is_below(self, path: str) -> bool:
        """Return whether a path is one of the places or below one. It compares text: `path` has no links."""
        return any(path == place or path.startswith(f"{place}/") for place in self.real_paths)

    def among(self, entries: Iterable[os.stat_result]) -> frozenset[Inode]:
        """Return the inodes of the protected places, and of entries that are hard links into them."""
        inodes = frozenset(self._mounts())
        devices = {device for device, _ in inodes}
        may_hide = [entry for entry in entries if entry.st_dev in devices and _has_more_names(entry)]
        return inodes | (self._inodes_below(may_hide) & set(map(_inode, may_hide)) if may_hide else inodes)

    def _mounts(self) -> dict[Inode, int]:
        """Return the places that exist now, each with the mount that it is reached through."""
        return {_inode(os.fstat(place)): _mount(place) for place in self._opened()}

    def _opened(self) -> Iterator[int]:
        """Yield a descriptor of each place that exists now."""
        for path in self._paths:
            try:
                place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError as error:
                _require_absent(error)
                continue
            try:
                yield place
            finally:
                os.close(place)

    def _inodes_below(self, files: Iterable[os.stat_result]) -> frozenset[Inode]:
        """Return the inodes of everything in the places, read after each of the files got its last name.

        Reading takes long, so the result is kept for a moment. A new name changes the ctime of a file.
        """
        now, now_ns, index = clock.monotonic(), clock.now_ns(), self._index
        last_named = max(file.st_ctime_ns for file in files) + CLOCK_STEP
        if now - index.read_at > MAX_INDEX_AGE or last_named > index.read_at_ns:
            self._index = index = _InodeIndex(frozenset(_walk(self._paths)), now, now_ns)
        return index.inodes


def _chain(fd: int) -> Iterator[os.stat_result]:
    """Yield the status of an opened file and of the directories above it; nothing if it was just moved."""
    found = os.fstat(fd)
    if stat.S_ISDIR(found.st_mode):
        yield from _upwards(os.dup(fd))
        return
    # The kernel knows the directory that the file was opened in. The name is checked again in that directory,
    # because another program may have moved the file since.
    directory, name = os.path.split(os.readlink(f"/proc/self/fd/{fd}"))
    try:
        parent = os.open(directory, _DIRECTORY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return
    if not _has(parent, name, _inode(found)):
        os.close(parent)
        return
    yield found
    yield from _upwards(parent)


def _has(directory: int, name: str, inode: Inode) -> bool:
    """Return whether a directory has an entry with this name and inode."""
    try:
        return _inode(os.stat(name, dir_fd=directory, follow_symlinks=False)) == inode
    except FileNotFoundError:
        return False


def _upwards(fd: int) -> Iterator[os.stat_result]:
    """Yield the status of a directory and of each one above it, up to the root; closes the descriptor."""
    below: Inode | None = None
    try:
        while True:
            found = os.fstat(fd)
            if _inode(found) == below:  # the root is its own parent
                return
            yield found
            below = _inode(found)
            above = os.open("..", _DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = above
    finally:
        os.close(fd)


def _has_more_names(found: os.stat_result) -> bool:
    """Return whether a file has more than one hard link."""
    return not stat.S_ISDIR(found.st_mode) and found.st_nlink > 1


def _mount(fd: int) -> int:
    """Return the id of the mount that a descriptor was opened through."""
    with open(f"/proc/self/fdinfo/{fd}") as lines:
        return next((int(line.split()[1]) for line in lines if line.startswith("mnt_id:")), -1)


def _walk(paths: Iterable[str]) -> Iterator[Inode]:
    """Yield the inodes of these paths and of everything below them."""
    for path in paths:
        with _absent():
            yield _inode(os.stat(path))
        for directory, directories, files in os.walk(path, onerror=_require_absent):
            for name in (*directories, *files):
                with _absent():
                    yield _inode(os.lstat(os.path.join(directory, name)))


@contextmanager
def _absent() -> Iterator[None]:
    """Ignore a path that does not exist. Raise other errors: an unread place would not be protected."""
    try:
        yield
    except OSError as error:
        _require_absent(error)


def _require_absent(error: OSError) -> None:
    """Ignore an error which says that a path does not exist; raise every other one."""
    if error.errno not in _ABSENT:
        raise error


def _inode(found: os.stat_result) -> Inode:
    """Return the device and the inode number of a file."""
    return found.st_dev, found.st_ino
