"""Which directories a session may live in: real ones, inside the workspace root."""

import os
from pathlib import Path

import structlog

from ..domain.errors import Forbidden, Invalid, NotFound
from .files import make_directory

log = structlog.get_logger()


def directory_inside(root: Path, text: str) -> Path:
    """The real directory a text names; refused and logged when it lies outside the root (R25)."""
    if "\0" in text or not text:
        raise Invalid("a directory needs a path without NUL")
    path = Path(text).expanduser()
    if not path.is_absolute():
        raise Invalid(f"{text} is not an absolute path")
    real, real_root = Path(os.path.realpath(path)), Path(os.path.realpath(root))
    if not real.is_relative_to(real_root):
        log.warning("security: path outside the workspace root", path=text, real=str(real))
        raise Forbidden(
            f"{text} is outside the workspace root {root}; choose a directory inside it, "
            "or start the server with another --workspace-root"
        )
    if not real.is_dir():
        raise NotFound(f"there is no directory {text}")
    return real


def workspace_inside(root: Path, text: str) -> Path:
    """The same; a directory that is missing is made, for nobody but its owner and group (R60)."""
    try:
        return directory_inside(root, text)
    except NotFound:
        make_directory(str(root), str(Path(text).expanduser()))
        return directory_inside(root, text)
