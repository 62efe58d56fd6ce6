"""Restrict this process by Landlock, then run a program in its place. Used where bubblewrap does not work.

This file is run as a script, so it imports nothing of Bullpen. Its arguments are JSON, `--` and the program.
Landlock only allows: a directory that contains a hidden one is allowed by the names of its other entries, so
an entry that is created there later is not allowed.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import PurePosixPath

from landlockpy import AccessFS, AccessNet, Ruleset, Scope

READ = AccessFS.EXECUTE | AccessFS.READ_FILE | AccessFS.READ_DIR
OF_FILES = (
    AccessFS.EXECUTE | AccessFS.READ_FILE | AccessFS.WRITE_FILE | AccessFS.TRUNCATE | AccessFS.IOCTL_DEV
)
WRITE = ~AccessFS.NONE & ~(AccessFS.MAKE_BLOCK | AccessFS.MAKE_CHAR | AccessFS.RESOLVE_UNIX)
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")


def allowed_paths(mounts: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each path with `read` or `write`, given the access to some paths; all others can be read."""
    mounts = {"/": "read", "/dev": "hidden", **{f"/dev/{name}": "write" for name in DEVICES}, **mounts}
    yield from _allowed_below("/", "read", mounts)


def _allowed_below(path: str, access: str, mounts: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what is allowed at a path with this access, and below it."""
    inside = {each: mounts[each] for each in mounts if _is_below(each, path)}
    if access in ("hidden", "masked"):
        tops = [each for each in inside if not any(_is_below(each, other) for other in inside)]
        for each in tops:
            yield from _allowed_below(each, inside[each], mounts)
    elif access == "write":  # with all that is in it; a run could lead one of these paths elsewhere
        yield path, access
    elif not any(each in ("hidden", "masked") for each in inside.values()):
        yield path, access
        yield from ((each, "write") for each in inside if inside[each] == "write")
    else:
        for entry in _entries(path):
            child = os.path.join(path, entry)
            yield from _allowed_below(child, mounts.get(child, access), mounts)


def _entries(directory: str) -> list[str]:
    """Return the names in a directory; none if it cannot be read or is a file."""
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _is_below(path: str, top: str) -> bool:
    """Return whether a path lies below a directory."""
    return path != top and PurePosixPath(path).is_relative_to(top)


def restrict(mounts: dict[str, str]) -> None:
    """Restrict this process and its children to these paths, for ever."""
    scoped = Scope.ABSTRACT_UNIX_SOCKET | Scope.SIGNAL
    handled = WRITE | AccessFS.MAKE_BLOCK | AccessFS.MAKE_CHAR
    with Ruleset(handled_fs=handled, handled_net=AccessNet.NONE, scoped=scoped) as ruleset:
        for path, access in allowed_paths(mounts):
            rights = WRITE if access == "write" else READ
            try:
                ruleset.allow_path(path, rights if os.path.isdir(path) else rights & OF_FILES)
            except FileNotFoundError:  # removed meanwhile
                continue
        ruleset.restrict()


def main() -> None:
    """Restrict this process as the first argument says, and run the program that follows `--`."""
    order, argv = json.loads(sys.argv[1]), sys.argv[3:]
    restrict(order["mounts"])
    os.environ.update(order["variables"])
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.exit(f"cannot start {argv[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
