"""Copy files from one workspace to another; what leads out of either is left out and logged."""

import errno
import os
import shutil
import stat
from pathlib import PurePosixPath

import structlog

from ..domain.errors import Forbidden
from .files import WorkspaceFiles, open_beneath

log = structlog.get_logger()

_GONE = {errno.ENOENT, errno.EEXIST, errno.ENOTDIR}  # meanwhile, or something else is there already
_OUTSIDE = {errno.EXDEV, errno.ELOOP}


def copy_file(source: WorkspaceFiles, target: WorkspaceFiles, name: str) -> bool:
    """Copy one file under the same name, with its mode and times; return False if it was left out.

    The copy is a file of its own, whatever other names the original has. A link stays a link, and is
    copied only when it leads to something inside that is not protected.
    """
    try:
        with source.opened() as here, target.opened() as there:
            if _is_link(here, name):
                with source.opening(here, name, os.O_PATH):
                    return _copy_link(source, here, target, there, name)
            return _copy_content(source, here, target, there, name)
    except Forbidden:
        return False
    except OSError as error:
        if error.errno in _OUTSIDE:
            log.warning("security: not copied, it leads out of its directory", path=f"{source.root}/{name}")
        elif error.errno not in _GONE:
            raise
        return False


def _is_link(top: int, name: str) -> bool:
    fd = open_beneath(top, name, os.O_PATH | os.O_NOFOLLOW)
    try:
        return stat.S_ISLNK(os.fstat(fd).st_mode)
    finally:
        os.close(fd)


def _copy_link(source: WorkspaceFiles, here: int, target: WorkspaceFiles, there: int, name: str) -> bool:
    last = PurePosixPath(name).name
    with source.opened_parent(here, name) as parent:
        text = os.readlink(last, dir_fd=parent)
    with target.opened_parent(there, name) as parent:
        os.symlink(text, last, dir_fd=parent)
    return True


def _copy_content(source: WorkspaceFiles, here: int, target: WorkspaceFiles, there: int, name: str) -> bool:
    with source.opening(here, name, os.O_RDONLY | os.O_NOFOLLOW) as fd:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            return False
        with (
            open(fd, "rb", closefd=False) as original,
            target.opened_parent(there, name) as parent,
            open(_create(parent, name), "wb") as copy,
        ):
            shutil.copyfileobj(original, copy, 1 << 20)
            copy.flush()
            os.fchmod(copy.fileno(), stat.S_IMODE(about.st_mode))
            os.utime(copy.fileno(), ns=(about.st_atime_ns, about.st_mtime_ns))
    return True


def _create(parent: int, name: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(PurePosixPath(name).name, flags, 0o600, dir_fd=parent)
