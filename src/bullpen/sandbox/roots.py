"""Decide which directories a session may live in: those inside a workspace root.

If `workspace_root` is set, its directories are the only roots. Otherwise the roots are the scratch directory,
every registered repository with its worktrees, and the directories that the owner has added.
"""

import asyncio
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Literal

import msgspec
import structlog
from msgspec import Struct

from .. import clock
from ..config import Config
from ..domain.errors import Conflict, Forbidden, Invalid, NotFound
from ..domain.failures import explain
from ..domain.records import RepositorySettings
from ..git.discovery import find_git_directories
from ..store.answers import PendingAnswer
from ..store.records import RecordStore
from .files import WorkspaceFiles
from .protected import protected_places
from .root_rules import quoted, real_path, root_refusal, suggested_root

log = structlog.get_logger()

KEY = "roots"  # of the setting that stores the added roots
NEW_ROOT_MODE = 0o750


class Root(Struct, frozen=True, kw_only=True, rename="camel"):
    """A directory in which sessions are allowed, and why."""

    path: str
    source: Literal["setting", "scratch", "repository", "added"]
    added_at: int | None = None  # milliseconds since the epoch


class WorkspaceRoots:
    """The roots in force. Only `add` and registering a repository extend them."""

    def __init__(
        self, config: Config, records: RecordStore, repositories: Mapping[str, RepositorySettings]
    ) -> None:
        """`repositories` maps the ids of registered repositories to their settings; it changes over time."""
        self.protected = protected_places(config)
        # Resolved once: a program that swaps a root for a link later does not move the boundary.
        self._fixed = tuple(Path(os.path.realpath(path)) for path in config.workspace_root)
        self._scratch = Path(os.path.realpath(config.scratch_root))
        self._records = records
        self._settings = repositories
        self._added: tuple[Root, ...] = ()
        self._registered: dict[str, str] = {}  # paths of repositories by id
        self._changing = asyncio.Lock()  # changes are made one after the other

    async def load(self) -> None:
        """Read the added roots. The first time, the directory of each active session becomes a root."""
        await self.reload_repositories()
        stored = await self._records.setting(KEY)
        if stored is None:
            used = await self._records.active_locations()
            await self._store(tuple(_added(path) for path in used if root_refusal(Path(path)) is None))
        else:
            self._added = msgspec.convert(stored, tuple[Root, ...])

    async def reload_repositories(self) -> None:
        """Read which repositories are registered; called after each change of them."""
        self._registered = {each.id: each.path for each in await self._records.repositories()}

    @property
    def is_fixed(self) -> bool:
        """Whether the setting `workspace_root` decides, so that no root can be added."""
        return bool(self._fixed)

    @property
    def all(self) -> list[Root]:
        """All roots in force, with the reason for each."""
        if self._fixed:
            return [Root(path=str(path), source="setting") for path in self._fixed]
        repositories = (Root(path=path, source="repository") for path in self.registered)
        return [Root(path=str(self._scratch), source="scratch"), *repositories, *self._added]

    @property
    def registered(self) -> Collection[str]:
        """The paths of the registered repositories, which are roots unless the roots are fixed."""
        return self._registered.values()

    # Decisions

    def directory(self, text: str) -> Path:
        """Return the real directory that a text names, or raise Forbidden if no root contains it."""
        real = real_path(text)
        if not self.contains(real):
            raise self.refusal(text, real)
        return self._checked(real, text)

    def directory_of_owner(self, text: str) -> Path:
        """Return a directory inside a root, or one that the owner may add as a root; else raise Forbidden."""
        real = real_path(text)
        if self.contains(real) or not (self._fixed or root_refusal(real)):
            return self._checked(real, text)
        raise self.refusal(text, real)

    def may_browse(self, real: Path) -> bool:
        """Tell whether the owner may list a directory to choose a workspace root: no system directory."""
        if self._fixed:
            return self.contains(real)
        return real == real.parent or root_refusal(real, force=True) is None

    def new_directory(self, text: str) -> Path:
        """Return the real directory that a text names inside a root; make it if it is missing."""
        real = real_path(text)
        if not os.path.isdir(real) and (root := self._root_of(real)):
            WorkspaceFiles(str(root), self).make_directory(str(real))
        return self.directory(text)

    def default_directory(self, name: str) -> Path:
        """Return the directory for a session without one: the first fixed root or a new scratch directory."""
        above = self.make_directory_of_new_projects()
        return above if self._fixed else self.new_directory(str(above / name))

    @property
    def directory_of_new_projects(self) -> Path:
        """The directory for clones and new session directories: the first fixed root or the scratch root."""
        return self._fixed[0] if self._fixed else self._scratch

    def make_directory_of_new_projects(self) -> Path:
        """Return the directory for new projects; make the scratch root if it is that and does not exist."""
        if not self._fixed:
            self._scratch.mkdir(NEW_ROOT_MODE, parents=True, exist_ok=True)
        return self.directory(str(self.directory_of_new_projects))

    def contains(self, real: Path) -> bool:
        """Tell whether a real path lies inside a root, or in a worktree of a registered repository."""
        return self._root_of(real) is not None or (not self._fixed and self._is_worktree(real))

    def require_inside(self, fd: int, path: str) -> None:
        """Raise Forbidden unless an opened directory lies inside a root and is not protected."""
        real = Path(os.readlink(f"/proc/self/fd/{fd}"))
        if not self.contains(real):
            raise self.refusal(path, real)
        if self.protected.refuses(fd, secrets=True):
            raise _protected(path)

    def require_movable(self, path: Path) -> None:
        """Raise Forbidden if a directory must not be moved or removed because of Bullpen's data.

        The directory may be missing: then it must not be made.
        """
        try:
            overlaps = self.protected.overlaps(Path(os.path.realpath(path)))
        except OSError as error:
            raise explain(error) or Invalid(f"{path}: {error.strerror}") from None
        if overlaps:
            log.warning("security: a worktree in or around a protected directory", path=str(path))
            raise Forbidden(f"{path} is, contains or lies in a directory that belongs to Bullpen")

    def is_watched(self, path: str) -> bool:
        """Tell whether a change at a path is reported; changes in Bullpen's own places are not."""
        return not self.protected.is_below(os.path.realpath(path))  # a watch follows links

    # Changes

    async def add(self, text: str, force: bool, answer: PendingAnswer[Root] | None = None) -> Root:
        """Add and store a workspace root. `force` allows the home directory or another shared one.

        Raise Conflict if the roots are fixed by a setting.
        """
        if self._fixed:
            raise Conflict(
                "the workspace roots are fixed by the setting workspace_root (AGENT_WORKSPACE_ROOT); "
                "change that setting and restart the server"
            )
        real = real_path(text)
        if refused := root_refusal(real, force=force):
            raise refused
        root = _added(str(self._checked(real, text)))
        async with self._changing:
            others = tuple(each for each in self._added if each.path != root.path)
            await self._store((*others, root), _about(answer, root))
        log.warning("security: workspace root added", path=root.path, forced=force)
        return root

    async def remove(self, text: str) -> None:
        """Remove an added root, or raise NotFound.

        Programs in it keep running, but no new one is started there.
        """
        path = str(PurePath(text))
        async with self._changing:
            others = tuple(each for each in self._added if each.path != path)
            if len(others) == len(self._added):
                raise self._not_added(path)
            await self._store(others)
        log.warning("security: workspace root removed", path=path)

    async def _store(self, added: tuple[Root, ...], answer: PendingAnswer[None] | None = None) -> None:
        """Store and use a new list of added roots."""
        await self._records.set_setting(KEY, added, answer)
        self._added = added

    def _not_added(self, path: str) -> Conflict | NotFound:
        """Return the error for a path that is not an added root: it says where the root comes from."""
        found = next((each for each in self.all if each.path == path), None)
        match found.source if found else None:
            case "setting":
                return Conflict(f"{path} is a root by the setting workspace_root; change that setting")
            case "scratch":
                return Conflict(f"{path} is always a root; the setting scratch_root moves it")
            case "repository":
                return Conflict(f"{path} is a root because it is registered; remove the repository")
        return NotFound(f"{path} is not a workspace root")

    # Helpers

    def _root_of(self, real: Path) -> Path | None:
        """Return the root that contains a real path; None if it lies outside of all roots."""
        return next((root for root in self.directories() if real.is_relative_to(root)), None)

    def directories(self) -> Iterator[Path]:
        """Yield the directories of all roots, with the worktrees beside repositories."""
        for root in self.all:
            path = Path(root.path)
            yield path
            if root.source == "repository":
                yield path.with_name(f"{path.name}.worktrees")

    def _is_worktree(self, real: Path) -> bool:
        """Return whether a path is in a linked worktree of a registered repository: each names the other."""
        git_dirs = find_git_directories(real)
        if git_dirs is None or root_refusal(git_dirs.work_tree) is not None:
            return False
        common = str(git_dirs.common_dir)
        return any(
            common in (self._git_dir(repo_id), os.path.join(path, ".git"))
            for repo_id, path in self._registered.items()
        )

    def _git_dir(self, repo_id: str) -> str | None:
        """Return the git directory that a repository had when it was registered, or None if unknown."""
        settings = self._settings.get(repo_id)
        return settings.git_dir if settings else None

    def _checked(self, real: Path, text: str) -> Path:
        """Return the directory; raise an error if it does not exist or is protected."""
        try:
            fd = os.open(real, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                is_protected = self.protected.refuses(fd, secrets=True)
            finally:
                os.close(fd)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(f"there is no directory {text}") from None
        except OSError as error:
            raise explain(error) or Invalid(f"{text}: {error.strerror}") from None
        if is_protected:
            raise _protected(text)
        return real

    def refusal(self, text: str, real: Path) -> Forbidden | NotFound:
        """Log a path outside the roots and return the error, which says how to allow it."""
        log.warning("security: path outside the workspace roots", path=text, real=str(real))
        if self._fixed:
            roots = ":".join(map(str, self._fixed))
            return Forbidden(
                f"{text} is outside the workspace root {roots}; choose a directory inside it, "
                "or start the server with another --workspace-root"
            )
        if refused := root_refusal(real):
            return refused
        if not os.path.isdir(real):
            return NotFound(f"there is no directory {text}")
        root = suggested_root(real)
        return Forbidden(
            f"sessions are not allowed in {root} yet; allow it with `bullpen roots add {quoted(root)}`"
        ).with_details({"allowRoot": str(root)})


def _added(path: str) -> Root:
    """Return an added root with the current time."""
    return Root(path=path, source="added", added_at=clock.now_ms())


def _about(answer: PendingAnswer[Root] | None, root: Root) -> PendingAnswer[None] | None:
    """Return the answer of a request that adds `root`, for a database write that returns nothing."""
    if answer is None:
        return None
    status_and_body = answer.render(root)
    return PendingAnswer(answer.key, answer.body_hash, lambda _: status_and_body)


def _protected(text: str) -> Forbidden:
    """Log a protected directory, and return the error."""
    log.warning("security: a protected directory as a workspace", path=text)
    return Forbidden(f"{text} is protected: it belongs to Bullpen")
