"""Copy files from one workspace to another; skip and log each path that leads out of either."""

import errno
import os
import shutil
import stat
from pathlib import PurePosixPath

import structlog

from ..domain.errors import Forbidden
from .files import WorkspaceFiles, open_beneath

log = structlog.get_logger()

_GONE = {errno.ENOENT, errno.EEXIST, errno.ENOTDIR}  # removed meanwhile, or the target exists
_OUTSIDE = {errno.EXDEV, errno.ELOOP}


def copy_file(source: WorkspaceFiles, target: WorkspaceFiles, name: str) -> bool:
    """Copy one file under the same name, with its mode and times; return False if it was skipped.

    A hard link becomes a file of its own. A symbolic link is copied as a link, and only if its target is
    inside the workspace and not protected.
    """
    try:
        with source.opened() as source_top, target.opened() as target_top:
            if _is_link(source_top, name):
                with source.opening(source_top, name, os.O_PATH):
                    return _copy_link(source, source_top, target, target_top, name)
            return _copy_content(source, source_top, target, target_top, name)
    except Forbidden:
        return False
    except OSError as error:
        if error.errno in _OUTSIDE:
            log.warning(
                "security: not copied, the path leads out of its directory", path=f"{source.root}/{name}"
            )
        elif error.errno not in _GONE:
            raise
        return False


def _is_link(top: int, name: str) -> bool:
    """Return whether a path below `top` is a symbolic link."""
    fd = open_beneath(top, name, os.O_PATH | os.O_NOFOLLOW)
    try:
        return stat.S_ISLNK(os.fstat(fd).st_mode)
    finally:
        os.close(fd)


def _copy_link(
    source: WorkspaceFiles, source_top: int, target: WorkspaceFiles, target_top: int, name: str
) -> bool:
    """Copy a symbolic link as a link, without following it; return True."""
    last = PurePosixPath(name).name
    with source.opened_parent(source_top, name) as parent:
        text = os.readlink(last, dir_fd=parent)
    with target.opened_parent(target_top, name) as parent:
        os.symlink(text, last, dir_fd=parent)
    return True


def _copy_content(
    source: WorkspaceFiles, source_top: int, target: WorkspaceFiles, target_top: int, name: str
) -> bool:
    """Copy a regular file with its mode and times; return False for any other kind of file."""
    with source.opening(source_top, name, os.O_RDONLY | os.O_NOFOLLOW) as fd:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return False
        with (
            open(fd, "rb", closefd=False) as original,
            target.opened_parent(target_top, name) as parent,
            open(_create(parent, name), "wb") as copy,
        ):
            shutil.copyfileobj(original, copy, 1 << 20)
            copy.flush()
            os.fchmod(copy.fileno(), stat.S_IMODE(status.st_mode))
            os.utime(copy.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
    return True


def _create(parent: int, name: str) -> int:
    """Create a new file in the directory, and return its descriptor."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(PurePosixPath(name).name, flags, 0o600, dir_fd=parent)
