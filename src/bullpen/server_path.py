"""Find where the programs are that the server itself runs: in no directory that an agent can write."""

import os
from collections.abc import Callable, Iterable
from functools import lru_cache


class ServerPath:
    """The PATH of the server for its own programs; agents and terminals get the complete one."""

    def __init__(self) -> None:
        self.writable: Callable[[], Iterable[str]] = tuple  # the directories that agents can write

    def __str__(self) -> str:
        return _outside(os.environ.get("PATH", os.defpath), tuple(self.writable()))


SERVER_PATH = ServerPath()


@lru_cache(8)
def _outside(path: str, writable: tuple[str, ...]) -> str:
    """Return the absolute directories of a PATH that lie in none of the others, which are real paths.

    If none is left, because a workspace may be anywhere, return those of the system.
    """
    tops = [f"{each.rstrip('/')}/" for each in writable]
    found = [each for each in path.split(":") if os.path.isabs(each)]
    outside = [each for each in found if not f"{os.path.realpath(each)}/".startswith(tuple(tops))]
    return ":".join(outside) or os.defpath
