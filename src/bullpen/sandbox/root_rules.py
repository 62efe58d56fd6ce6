"""Decide which directories may become a workspace root, and which one to offer to the owner."""

import os
import pwd
import shlex
from contextlib import suppress
from pathlib import Path

from ..domain.errors import Forbidden, Invalid, NotFound
from ..domain.failures import explain

# Neither these nor directories below them become a root: programs, devices and files of the kernel.
SYSTEM = ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys")
# Used by many programs or users: a root only with `--force`. Directories below them may be a root.
SHARED = frozenset(
    (
        *("home", "media", "mnt", "opt", "srv", "tmp"),
        *("usr", "usr/bin", "usr/lib", "usr/local", "usr/sbin", "usr/share", "usr/src"),
        *("var", "var/cache", "var/lib", "var/log", "var/run", "var/spool", "var/tmp"),
    )
)


def real_path(text: str) -> Path:
    """Return the absolute path that a text names, with links resolved; raise Invalid if it names none."""
    if "\0" in text or not text:
        raise Invalid("a directory needs a path without NUL")
    try:
        path = Path(text).expanduser()
        if not path.is_absolute():
            raise Invalid(f"{text} is not an absolute path")
        real = Path(os.path.realpath(path))
        with suppress(FileNotFoundError, NotADirectoryError):
            os.lstat(real)  # raises if a name is too long or a directory above cannot be searched
        return real
    except RuntimeError:
        raise Invalid(f"{text} names a user that this machine does not have") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise explain(error) or Invalid(f"{text[:200]!r} is not a usable path: {reason}") from None


def directory_below(top: str, text: str) -> Path:
    """Return the real directory that a text names; raise Forbidden if it is not `top` or below it."""
    real = real_path(text)
    if not real.is_relative_to(os.path.realpath(top)):
        raise Forbidden(f"{text} is outside the workspace {top}")
    if not os.path.isdir(real):
        raise NotFound(f"there is no directory {text}")
    return real


def root_refusal(real: Path, *, force: bool = False) -> Forbidden | None:
    """Say why a directory cannot become a root; None if it can. `force` allows a shared directory."""
    parts = real.parts[1:]
    if not parts or parts[0] in SYSTEM:
        return Forbidden(f"{real} is a system directory; sessions are never allowed there")
    if force:
        return None
    hint = f"choose a directory inside it, or allow it with `bullpen roots add --force {quoted(real)}`"
    if any(home.is_relative_to(real) for home in homes()):
        return Forbidden(f"{real} contains your home directory; {hint}")
    if "/".join(parts) in SHARED:
        return Forbidden(f"{real} is used by many programs; {hint}")
    return None


def suggested_root(real: Path) -> Path:
    """Return the root to suggest for a directory: the work tree around it if allowed, else the directory."""
    around = (each for each in (real, *real.parents) if os.path.lexists(each / ".git"))
    top = next(around, real)
    return real if root_refusal(top) else top


def homes() -> list[Path]:
    """Return the home directories of the server's user, as the environment and the system name them."""
    found = {os.path.expanduser("~")}
    with suppress(KeyError):  # containers run with user ids that have no entry
        found.add(pwd.getpwuid(os.getuid()).pw_dir)
    return sorted(path for path in (Path(os.path.realpath(each)) for each in found) if path.name)


def quoted(path: Path) -> str:
    """Return a path as a shell needs it."""
    return shlex.quote(str(path))
