"""Removed worktrees, kept whole in our own directory for a week: from there they can be restored."""

import asyncio
import errno
import os
import shutil
from pathlib import Path

import msgspec
import structlog
from msgspec import Struct

from .. import clock
from ..domain.errors import Conflict, NotFound, RemoteFault
from ..domain.ids import new_id
from ..git import anchors
from ..git.places import Place
from ..git.process import run_process
from ..git.worktrees import Worktree, branch_head, create_branch, list_worktrees
from ..home import write_private

log = structlog.get_logger()

KEPT_MS = 7 * 24 * 60 * 60 * 1000
COPY_SECONDS = 3600.0

_RECORD, _TREE, _ADMIN = "record.json", "tree", "admin"


class Trashed(Struct, frozen=True, kw_only=True):
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


class Trash:
    """One directory for each: the record, the work tree, and what git knew of it (its index, its HEAD)."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def list(self, repo_id: str | None = None) -> list[Trashed]:
        """What can be restored, newest first."""
        found = [_read(path) for path in self._directory.glob(f"*/{_RECORD}")]
        mine = [each for each in found if each and repo_id in (None, each.repo_id)]
        return sorted(mine, key=lambda each: each.removed_at, reverse=True)

    def get(self, repo_id: str, name: str, id: str | None = None) -> Trashed:
        """The one that was removed last under a name, or the one with this id."""
        for trashed in self.list(repo_id):
            if trashed.name == name and id in (None, trashed.id):
                return trashed
        raise NotFound(f"there is no removed worktree {name}; they are kept for 7 days")

    async def take(self, repo_id: str, worktree: Worktree) -> Trashed:
        """Moves a worktree here. When that fails it is where it was."""
        trashed = Trashed(
            id=new_id(),
            repo_id=repo_id,
            name=worktree.name,
            path=str(worktree.path),
            branch=worktree.branch,
            head=worktree.head,
            removed_at=clock.now_ms(),
        )
        place, box = worktree.place, self._directory / trashed.id
        await anchors.anchor(place, worktree.head, trashed.id)
        try:
            box.mkdir(mode=0o700, parents=True)
            write_private(box / _RECORD, msgspec.json.encode(trashed).decode())
            await _move_both((worktree.path, box / _TREE), (place.git_dir, box / _ADMIN))
        except BaseException:
            await anchors.release(place, trashed.id)
            await asyncio.to_thread(shutil.rmtree, box, ignore_errors=True)
            raise
        return trashed

    async def restore(self, repository: Place, trashed: Trashed) -> None:
        """Puts a worktree back, byte for byte, and its branch when that was deleted since."""
        path, box = Path(trashed.path), self._directory / trashed.id
        admin = repository.common_dir / "worktrees" / trashed.name
        await _require_room(repository, trashed, path, admin)
        if trashed.branch and trashed.head and await branch_head(repository, trashed.branch) is None:
            await create_branch(repository, trashed.branch, trashed.head)
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        admin.parent.mkdir(mode=0o750, exist_ok=True)
        await _move_both((box / _TREE, path), (box / _ADMIN, admin))
        await anchors.release(repository, trashed.id)
        await asyncio.to_thread(shutil.rmtree, box, ignore_errors=True)

    async def empty(self, trashed: Trashed, repository: Place | None) -> None:
        """Removes one for good; its repository may be gone."""
        if repository is not None:
            await anchors.release(repository, trashed.id)
        await asyncio.to_thread(shutil.rmtree, self._directory / trashed.id)


def _read(path: Path) -> Trashed | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Trashed)
    except (OSError, msgspec.DecodeError) as error:
        log.warning("a record in the trash cannot be read", path=str(path), reason=str(error))
        return None


async def _require_room(repository: Place, trashed: Trashed, path: Path, admin: Path) -> None:
    for place in (path, admin):
        if _there(place):
            raise Conflict(f"{place} is in the way; move it away first")
    for other in await list_worktrees(repository):
        if trashed.branch and other.branch == trashed.branch:
            raise Conflict(f"the branch {trashed.branch} is checked out in {other.path} already")


async def _move_both(tree: tuple[Path, Path], admin: tuple[Path, Path]) -> None:
    """Both or none. A work tree somebody deleted is not missed."""
    has_tree = _there(tree[0])
    if has_tree:
        await _move(*tree)
    try:
        await _move(*admin)
    except BaseException:
        if has_tree:
            await _move(tree[1], tree[0])
        raise


def _there(path: Path) -> bool:
    return os.path.lexists(path)


async def _move(source: Path, target: Path) -> None:
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise RemoteFault(f"{source} cannot be moved: {error.strerror}") from None
        await _copy_over(source, target)


async def _copy_over(source: Path, target: Path) -> None:
    """To another disk: a whole copy first, and only then is the original removed."""
    partial = target.with_name(f"{target.name}.partial")
    copying = ["cp", "-a", "-T", "--", str(source), str(partial)]
    env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    ended = await run_process(copying, env=env, cwd="/", timeout=COPY_SECONDS, limit=1 << 20)
    if ended.code:
        await asyncio.to_thread(shutil.rmtree, partial, ignore_errors=True)
        raise RemoteFault(f"{source} cannot be copied: {ended.errors.splitlines()[0]}")
    os.rename(partial, target)
    await asyncio.to_thread(shutil.rmtree, source)
