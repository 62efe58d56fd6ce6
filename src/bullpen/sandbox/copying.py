"""Copies files from one workspace to another: what leads out of either is left out, and said in our log."""

import errno
import os
import shutil
import stat
from pathlib import PurePosixPath

import structlog

from .files import SAFELY, open_beneath, opened_parent, opened_root

log = structlog.get_logger()

_GONE = {errno.ENOENT, errno.EEXIST, errno.ENOTDIR}  # meanwhile, or something else is there already
_OUTSIDE = {errno.EXDEV, errno.ELOOP}


def copy_file(source: str, target: str, name: str) -> bool:
    """Copies one file under the same name, with its mode and times; False when it was left out.

    The copy is a file of its own, whatever other names the original has. A link stays a link, and is
    copied only when it leads to something inside.
    """
    try:
        with opened_root(source) as here, opened_root(target) as there:
            if _is_link(here, name):
                os.close(open_beneath(here, name, os.O_PATH))
                return _copy_link(here, there, name)
            return _copy_content(here, there, name)
    except OSError as error:
        if error.errno in _OUTSIDE:
            log.warning("security: not copied, it leads out of its directory", path=f"{source}/{name}")
        elif error.errno not in _GONE:
            raise
        return False


def _is_link(top: int, name: str) -> bool:
    fd = open_beneath(top, name, os.O_PATH | os.O_NOFOLLOW)
    try:
        return stat.S_ISLNK(os.fstat(fd).st_mode)
    finally:
        os.close(fd)


def _copy_link(here: int, there: int, name: str) -> bool:
    last = PurePosixPath(name).name
    with opened_parent(here, name) as parent:
        text = os.readlink(last, dir_fd=parent)
    with opened_parent(there, name) as parent:
        os.symlink(text, last, dir_fd=parent)
    return True


def _copy_content(here: int, there: int, name: str) -> bool:
    fd = open_beneath(here, name, os.O_RDONLY | os.O_NOFOLLOW | SAFELY)
    with open(fd, "rb") as original:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            return False
        with opened_parent(there, name) as parent, open(_create(parent, name), "wb") as copy:
            shutil.copyfileobj(original, copy, 1 << 20)
            copy.flush()
            os.fchmod(copy.fileno(), stat.S_IMODE(about.st_mode))
            os.utime(copy.fileno(), ns=(about.st_atime_ns, about.st_mtime_ns))
    return True


def _create(parent: int, name: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(PurePosixPath(name).name, flags, 0o600, dir_fd=parent)
