"""List the directories from which the owner chooses a project, and find git repositories near them.

System directories, protected places and, with the setting `workspace_root`, directories outside of it are
never listed.
"""

import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import structlog
from msgspec import Struct

from .. import clock
from ..domain.errors import Forbidden, Invalid, NotFound
from ..domain.failures import explain
from .root_rules import homes, real_path
from .roots import WorkspaceRoots

log = structlog.get_logger()

MAX_LISTED = 200
MAX_REPOSITORIES = 30
MAX_DEPTH = 3  # below a directory in which repositories are searched
MAX_SEARCHED = 4000  # directories
SEARCH_SECONDS = 2.0
_SKIPPED = frozenset({"node_modules", "snap", "go", "Library", "site-packages", "vendor", "target"})
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class ProjectDirectory(Struct, frozen=True, kw_only=True, rename="camel"):
    """A directory that the owner can choose."""

    path: str
    is_repository: bool
    is_allowed: bool  # inside a workspace root


class DirectoryChoices(Struct, frozen=True, kw_only=True):
    """The directories that continue a typed path; `more` are left out."""

    directories: list[ProjectDirectory]
    more: int = 0


class _FoundRepository(Struct, frozen=True):
    """A repository that a search found, and when git last wrote to it."""

    path: str
    used_at: float


def complete_path(roots: WorkspaceRoots, text: str) -> DirectoryChoices:
    """Return the directories whose path begins with a text: `/srv/ap` gives `/srv/app`.

    Raise Forbidden if the user may not see that directory.

    A relative path begins in the home directory. Without a text, return the fixed roots, if there are any.
    """
    if not text and roots.is_fixed:
        return DirectoryChoices(directories=[_choice(roots, Path(root.path)) for root in roots.all])
    prefix = "~/" if text == "~" else text if text.startswith(("/", "~")) else f"~/{text}"
    above, _, start = prefix.rpartition("/")
    directory = real_path(above or "/")
    if not roots.may_browse(directory):
        raise roots.refusal(text, directory)
    names = sorted(
        _subdirectories(roots, directory, is_hidden_listed=start.startswith(".")), key=str.casefold
    )
    found = [name for name in names if name.casefold().startswith(start.casefold())]
    paths = [path for name in found if roots.may_browse(path := directory / name)]
    return DirectoryChoices(
        directories=[_choice(roots, path) for path in paths[:MAX_LISTED]],
        more=max(0, len(paths) - MAX_LISTED),
    )


def find_repositories(roots: WorkspaceRoots) -> list[ProjectDirectory]:
    """Return the git repositories near the home directory, the roots and the server's own directory.

    Those that git used last come first; registered ones are left out.
    """
    found = {each.path: each for each in _search(roots, _starts(roots)) if each.path not in roots.registered}
    latest = sorted(found.values(), key=lambda each: each.used_at, reverse=True)
    return [_choice(roots, Path(each.path)) for each in latest[:MAX_REPOSITORIES]]


def _starts(roots: WorkspaceRoots) -> list[Path]:
    """Return the directories to search: fixed roots, else homes, beside projects, and the server's own."""
    if roots.is_fixed:
        return [Path(root.path) for root in roots.all]
    beside = [Path(root.path).parent for root in roots.all]
    return [Path(os.path.realpath(os.curdir)), *beside, *homes()]


def _search(roots: WorkspaceRoots, starts: Iterable[Path]) -> Iterator[_FoundRepository]:
    """Yield the repositories below some directories, the nearest first, until the search takes too long."""
    deadline = clock.monotonic() + SEARCH_SECONDS
    seen: set[Path] = set()
    waiting = deque((start, 0) for start in starts if roots.may_browse(start) and start != start.parent)
    while waiting and len(seen) < MAX_SEARCHED and clock.monotonic() < deadline:
        directory, depth = waiting.popleft()
        if directory in seen:
            continue
        seen.add(directory)
        if used_at := _last_use(directory / ".git"):
            yield _FoundRepository(str(directory), used_at)
        elif depth < MAX_DEPTH:
            with suppress(Forbidden, Invalid, NotFound):  # not readable, or removed meanwhile
                names = _subdirectories(roots, directory, is_hidden_listed=False)
                waiting.extend((directory / name, depth + 1) for name in names if name not in _SKIPPED)


def _last_use(git_dir: Path) -> float | None:
    """Return when a git directory was last changed; None if it is none or cannot be read."""
    try:
        return max(os.stat(git_dir / name).st_mtime for name in ("objects", "HEAD", "."))
    except OSError:
        return None


def _subdirectories(roots: WorkspaceRoots, directory: Path, *, is_hidden_listed: bool) -> Iterator[str]:
    """Yield the names of the directories in a directory, without links and protected places.

    Raise NotFound, Invalid or Forbidden if it cannot be listed.
    """
    try:
        fd = os.open(directory, _DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"there is no directory {directory}") from None
    except OSError as error:
        raise explain(error) or Invalid(f"{directory}: {error.strerror}") from None
    try:
        opened = Path(os.readlink(f"/proc/self/fd/{fd}"))
        if not roots.may_browse(opened):
            raise roots.refusal(str(directory), opened)
        if roots.protected.refuses(fd):
            raise Forbidden(f"{directory} is protected: it belongs to Bullpen or holds credentials")
        names = [name for name in os.listdir(fd) if is_hidden_listed or not name.startswith(".")]
        found = [(name, status) for name in names if (status := _directory_status(fd, name))]
    finally:
        os.close(fd)
    hidden = roots.protected.hidden([status for _, status in found])
    for (name, _), is_hidden in zip(found, hidden, strict=True):
        if not is_hidden:
            yield name


def _directory_status(fd: int, name: str) -> os.stat_result | None:
    """Return the status of an entry, or None if it is no directory or its name is not UTF-8."""
    try:
        name.encode()
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except (OSError, UnicodeEncodeError):
        return None
    return status if stat.S_ISDIR(status.st_mode) else None


def _choice(roots: WorkspaceRoots, path: Path) -> ProjectDirectory:
    """Return a directory with what the owner has to know to choose it."""
    return ProjectDirectory(
        path=str(path), is_repository=(path / ".git").is_dir(), is_allowed=roots.contains(path)
    )
