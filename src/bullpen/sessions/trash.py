"""Removed worktrees, kept whole in our own directory for a week: from there they can be restored."""

import asyncio
import errno
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

import msgspec
import structlog
from msgspec import Struct

from .. import clock
from ..domain.errors import Conflict, NotFound, RemoteFault
from ..domain.ids import new_id
from ..git import anchors
from ..git.places import GitDirectories
from ..git.process import run_process
from ..git.worktrees import Worktree, branch_head, create_branch, list_worktrees
from ..home import write_private

log = structlog.get_logger()

KEPT_MS = 7 * 24 * 60 * 60 * 1000
COPY_SECONDS = 3600.0

_RECORD, _TREE, _ADMIN = "record.json", "tree", "admin"


class TrashedWorktree(Struct, frozen=True, kw_only=True):
    """A worktree that was removed: where it was and what it had checked out."""

    id: str
    repo_id: str
    name: str
    path: str
    branch: str | None
    head: str | None
    removed_at: int

    @property
    def expires_at(self) -> int:
        return self.removed_at + KEPT_MS


class WorktreeTrash:
    """One directory for each: the record, the work tree, and what git knew of it (its index, its HEAD)."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def list(self, repo_id: str | None = None) -> list[TrashedWorktree]:
        """What can be restored, newest first."""
        found = [_read(path) for path in self._directory.glob(f"*/{_RECORD}")]
        mine = [each for each in found if each and repo_id in (None, each.repo_id)]
        return sorted(mine, key=lambda each: each.removed_at, reverse=True)

    def get(self, repo_id: str, name: str, id: str | None = None) -> TrashedWorktree:
        """The one that was removed last under a name, or the one with this id."""
        for trashed in self.list(repo_id):
            if trashed.name == name and id in (None, trashed.id) and trashed.expires_at > clock.now_ms():
                return trashed
        raise NotFound(f"there is no removed worktree {name}; they are kept for 7 days")

    async def take(self, repo_id: str, worktree: Worktree) -> TrashedWorktree:
        """Moves a worktree here. When that fails it is where it was, or here when that is taken meanwhile."""
        trashed = TrashedWorktree(
            id=new_id(),
            repo_id=repo_id,
            name=worktree.name,
            path=str(worktree.path),
            branch=worktree.branch,
            head=worktree.head,
            removed_at=clock.now_ms(),
        )
        place, box = worktree.place, self._directory / trashed.id
        box.mkdir(mode=0o700, parents=True)
        try:
            write_private(box / _RECORD, msgspec.json.encode(trashed).decode())
            await anchors.anchor(place, worktree.head, trashed.id)
            await _move_both((worktree.path, box / _TREE), (place.git_dir, box / _ADMIN), trashed.id)
        except BaseException:
            if _there(box / _TREE) or _there(box / _ADMIN):  # and so nowhere else
                log.error("a worktree is half removed", path=trashed.path, kept=str(box))
            else:
                await anchors.release(place, trashed.id)
                await _clear(box)
            raise
        return trashed

    async def require_room(self, repository: GitDirectories, trashed: TrashedWorktree) -> None:
        """Refuses a restore that something is in the way of."""
        path, _, admin = self._places(repository, trashed)
        for place in (path, admin):
            if _there(place):
                raise Conflict(f"{place} is in the way; move it away first")
        for other in await list_worktrees(repository):
            if trashed.branch and other.branch == trashed.branch:
                raise Conflict(f"the branch {trashed.branch} is checked out in {other.path} already")

    async def restore(self, repository: GitDirectories, trashed: TrashedWorktree) -> None:
        """Puts a worktree back, byte for byte, and its branch when that was deleted; there must be room."""
        path, box, admin = self._places(repository, trashed)
        if trashed.branch and trashed.head and await branch_head(repository, trashed.branch) is None:
            await create_branch(repository, trashed.branch, trashed.head)
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        admin.parent.mkdir(mode=0o750, exist_ok=True)
        await _move_both((box / _TREE, path), (box / _ADMIN, admin), trashed.id)
        await self.empty(trashed, repository)

    async def mend(self, repository: GitDirectories, trashed: TrashedWorktree) -> None:
        """After a kill: what was between its two moves is finished, what never began is forgotten.

        On one disk a move is one step, so what is there twice was made anew by somebody, and stays. Between
        two, the original goes in one step once its copy is whole: where both are, the move did not happen,
        unless the original still lies aside.
        """
        path, box, admin = self._places(repository, trashed)
        aside = _aside(path, trashed.id)
        for place in (path, admin, box / _TREE, box / _ADMIN):
            await _clear(_partial(place, trashed.id))
        for place in (admin, box / _TREE, box / _ADMIN):
            await _clear(_aside(place, trashed.id))
        await self._finish(repository, trashed, was_moved=_there(aside))
        if _there(box / _ADMIN) or not _there(box / _TREE):
            await _clear(aside)

    async def _finish(self, repository: GitDirectories, trashed: TrashedWorktree, *, was_moved: bool) -> None:
        path, box, admin = self._places(repository, trashed)
        has_tree, has_admin = _there(box / _TREE), _there(box / _ADMIN)
        in_use = _points_to(path, admin)
        if not has_tree and not has_admin:  # not taken at all, or restored
            await self.empty(trashed, repository)
        elif not has_admin:
            if in_use and _apart(path, box) and not was_moved:
                await self.empty(trashed, repository)
            elif not in_use and _there(admin):
                await _move(admin, box / _ADMIN, trashed.id)
                await _clear(_aside(admin, trashed.id))
        elif in_use and not _there(admin) and (not has_tree or _apart(path, box)):
            await _move(box / _ADMIN, admin, trashed.id)
            await self.empty(trashed, repository)
        elif has_tree and not _there(path) and _there(admin) and _apart(admin, box):
            _put_aside(admin, trashed.id)
            await _clear(_aside(admin, trashed.id))

    async def empty(self, trashed: TrashedWorktree, repository: GitDirectories | None) -> None:
        """Removes one for good, its record last; its repository may be gone."""
        if repository is not None:
            await anchors.release(repository, trashed.id)
        box = self._directory / trashed.id
        for part in (box / _TREE, box / _ADMIN):
            if _there(part):
                await asyncio.to_thread(_remove, part)
        await asyncio.to_thread(_remove, box)

    def sweep(self) -> None:
        """Removes what a kill left of a box that had no record yet, or no longer."""
        for box in self._directory.glob("*"):
            if not any(_there(box / part) for part in (_RECORD, _TREE, _ADMIN)):
                with suppress(OSError):
                    _remove(box)

    def _places(self, repository: GitDirectories, trashed: TrashedWorktree) -> tuple[Path, Path, Path]:
        """Where its work tree was, its box here, and where git's own directory of it was."""
        admin = repository.common_dir / "worktrees" / trashed.name
        return Path(trashed.path), self._directory / trashed.id, admin


def _read(path: Path) -> TrashedWorktree | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=TrashedWorktree)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        log.warning("a record in the trash cannot be read", path=str(path), reason=str(error))
        return None


async def _move_both(tree: tuple[Path, Path], admin: tuple[Path, Path], id: str) -> None:
    """Both or none. A work tree somebody deleted is not missed.

    What was put aside is removed when all is done: who stops waiting there has missed nothing.
    """
    has_tree = _there(tree[0])
    if has_tree:
        await _move(*tree, id)
    try:
        await _move(*admin, id)
    except BaseException:
        if has_tree:
            await _move(tree[1], tree[0], id)
            await _clear(_aside(tree[0], id), _aside(tree[1], id))
        raise
    await _clear(_aside(tree[0], id), _aside(admin[0], id))


def _there(path: Path) -> bool:
    return os.path.lexists(path)


async def _move(source: Path, target: Path, id: str) -> None:
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise RemoteFault(f"{source} cannot be moved: {error.strerror}") from None
        await _copy_over(source, target, id)


async def _copy_over(source: Path, target: Path, id: str) -> None:
    """To another disk: a whole copy first, and only then is the original put aside, in one step."""
    partial = _partial(target, id)
    copying = ["cp", "-a", "-T", "--", str(source), str(partial)]
    env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    ended = await run_process(copying, env=env, cwd="/", timeout=COPY_SECONDS, limit=1 << 20)
    if ended.code:
        await _clear(partial)
        raise RemoteFault(f"{source} cannot be copied: {ended.errors.splitlines()[0]}")
    # Nobody waits in between: whenever the copy has its name, the original has lost its own.
    try:
        os.rename(partial, target)
    except OSError as error:
        await _clear(partial)
        raise RemoteFault(f"{source} cannot be moved to {target}: {error.strerror}") from None
    try:
        _put_aside(source, id)
    except OSError as error:
        os.rename(target, partial)
        await _clear(partial)
        raise RemoteFault(f"{source} cannot be moved: {error.strerror}") from None


def _put_aside(directory: Path, id: str) -> None:
    """Gone in one step, so that nobody takes what is half deleted for the whole."""
    os.rename(directory, _aside(directory, id))


async def _clear(*rests: Path) -> None:
    """Removes what nobody needs any more; what stays is in nobody's way, and the next start tries again."""
    for rest in rests:
        if _there(rest):
            try:
                await asyncio.to_thread(_remove, rest)
            except OSError as error:
                log.warning("the rest of a worktree cannot be removed", path=str(rest), reason=str(error))


def _remove(directory: Path) -> None:
    """Also what is read-only, as the caches of some tools are."""
    try:
        shutil.rmtree(directory)
    except PermissionError:
        _make_writable(directory)
        shutil.rmtree(directory)


def _make_writable(directory: Path) -> None:
    with suppress(OSError):
        directory.chmod(stat.S_IRWXU)
    for top, names, _ in os.walk(directory):  # each is made readable before it is read
        for path in (Path(top, name) for name in names):
            if not path.is_symlink():
                with suppress(OSError):
                    path.chmod(stat.S_IRWXU)


def _partial(path: Path, id: str) -> Path:
    """With an id, so that nothing of somebody else's can have that name."""
    return path.with_name(f".{path.name}.{id}.partial")


def _aside(path: Path, id: str) -> Path:
    return path.with_name(f".{path.name}.{id}.moved")


def _apart(one: Path, other: Path) -> bool:
    """Whether two things lie on different disks."""
    return one.lstat().st_dev != other.lstat().st_dev


def _points_to(path: Path, admin: Path) -> bool:
    """Whether a directory is the work tree that git's own directory is for."""
    try:
        return (path / ".git").read_text().strip() == f"gitdir: {admin}"
    except (OSError, UnicodeDecodeError):
        return False
