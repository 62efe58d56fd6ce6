"""The trash: removed worktrees, kept in the data directory for a week to be restored or deleted."""

import asyncio
import errno
import os
from contextlib import suppress
from pathlib import Path

import msgspec
import structlog
from msgspec import Struct

from .. import clock
from ..domain.errors import Conflict, NotFound, RemoteFault
from ..domain.ids import new_id
from ..git import anchors
from ..git.git_directories import GitDirectories
from ..git.small_files import read_text
from ..git.worktrees import Worktree, branch_head, create_branch, list_worktrees
from ..home import write_private
from ..processes import run_process
from ..sandbox.removing import remove_tree
from ..server_path import SERVER_PATH

log = structlog.get_logger()

RETENTION_MS = 7 * 24 * 60 * 60 * 1000
COPY_TIMEOUT_SECONDS = 3600.0

_RECORD, _TREE, _ADMIN = "record.json", "tree", "admin"


class TrashedWorktree(Struct, frozen=True, kw_only=True):
    """A removed worktree, with its former path, branch and commit."""

    id: str
    repo_id: str
    name: str
    path: str
    branch: str | None
    head: str | None
    removed_at: int

    @property
    def expires_at(self) -> int:
        """The time in milliseconds after which the worktree is deleted."""
        return self.removed_at + RETENTION_MS


class WorktreeTrash:
    """Moves worktrees into the trash directory and out of it.

    An entry is a directory with a record, the work tree, and git's own directory of it (index, HEAD).
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def list(self, repo_id: str | None = None) -> list[TrashedWorktree]:
        """Return the removed worktrees (of one repository), newest first."""
        found = [_read(path) for path in self._directory.glob(f"*/{_RECORD}")]
        matching = [each for each in found if each and repo_id in (None, each.repo_id)]
        return sorted(matching, key=lambda each: each.removed_at, reverse=True)

    def get(self, repo_id: str, name: str, id: str | None = None) -> TrashedWorktree:
        """Return the worktree with this id, or the latest one with this name; or raise NotFound."""
        for trashed in self.list(repo_id):
            if trashed.name == name and id in (None, trashed.id) and trashed.expires_at > clock.now_ms():
                return trashed
        raise NotFound(f"there is no removed worktree {name}; they are kept for 7 days")

    async def move_in(self, repo_id: str, worktree: Worktree) -> TrashedWorktree:
        """Move a worktree to the trash.

        If that fails, it is at its old path, or in the trash if that path is in use meanwhile.
        """
        trashed = TrashedWorktree(
            id=new_id(),
            repo_id=repo_id,
            name=worktree.name,
            path=str(worktree.path),
            branch=worktree.branch,
            head=worktree.head,
            removed_at=clock.now_ms(),
        )
        place, entry = worktree.git_dirs, self._directory / trashed.id
        entry.mkdir(mode=0o700, parents=True)
        try:
            write_private(entry / _RECORD, msgspec.json.encode(trashed).decode())
            await anchors.add_refs(place, worktree.head, trashed.id)
            await _move_both((worktree.path, entry / _TREE), (place.git_dir, entry / _ADMIN), trashed.id)
        except BaseException:
            # What is in the entry could not be moved back, so it is the only copy.
            if _exists(entry / _TREE) or _exists(entry / _ADMIN):
                log.error(
                    "a worktree was moved to the trash only in part", path=trashed.path, trash=str(entry)
                )
            else:
                await anchors.remove_refs(place, trashed.id)
                await _remove_leftovers(entry)
            raise
        return trashed

    async def require_restorable(self, repository: GitDirectories, trashed: TrashedWorktree) -> None:
        """Raise Conflict if the worktree's old path exists again, or its branch is checked out elsewhere."""
        path, _, admin = self._paths(repository, trashed)
        for place in (path, admin):
            if _exists(place):
                raise Conflict(f"{place} is in the way; move it away first")
        for other in await list_worktrees(repository):
            if trashed.branch and other.branch == trashed.branch:
                raise Conflict(f"the branch {trashed.branch} is checked out in {other.path} already")

    async def restore(self, repository: GitDirectories, trashed: TrashedWorktree) -> None:
        """Move a worktree back, and create its branch again if needed. Call `require_restorable` before."""
        path, entry, admin = self._paths(repository, trashed)
        if trashed.branch and trashed.head and await branch_head(repository, trashed.branch) is None:
            await create_branch(repository, trashed.branch, trashed.head)
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        admin.parent.mkdir(mode=0o750, exist_ok=True)
        await _move_both((entry / _TREE, path), (entry / _ADMIN, admin), trashed.id)
        await self.delete(trashed, repository)

    async def recover(self, repository: GitDirectories, trashed: TrashedWorktree) -> None:
        """After a kill, finish a move whose first half is done, and delete the entry of one that never began.

        On one file system a move is atomic: if a path exists at both ends, a program has created it again,
        and it stays. Between file systems, the original is renamed once its copy is complete: if it exists
        at both ends, the move did not happen, unless the renamed original still exists.
        """
        path, entry, admin = self._paths(repository, trashed)
        aside = _aside_path(path, trashed.id)
        for place in (path, admin, entry / _TREE, entry / _ADMIN):
            await _remove_leftovers(_partial_path(place, trashed.id))
        for place in (admin, entry / _TREE, entry / _ADMIN):
            await _remove_leftovers(_aside_path(place, trashed.id))
        await self._finish(repository, trashed, was_moved=_exists(aside))
        if _exists(entry / _ADMIN) or not _exists(entry / _TREE):
            await _remove_leftovers(aside)

    async def _finish(self, repository: GitDirectories, trashed: TrashedWorktree, *, was_moved: bool) -> None:
        """Finish or undo the interrupted move, depending on what exists at which end."""
        path, entry, admin = self._paths(repository, trashed)
        has_tree, has_admin = _exists(entry / _TREE), _exists(entry / _ADMIN)
        in_use = _points_to(path, admin)
        if not has_tree and not has_admin:  # never moved, or restored
            await self.delete(trashed, repository)
        elif not has_admin:
            if in_use and _on_other_disk(path, entry) and not was_moved:
                await self.delete(trashed, repository)
            elif not in_use and _exists(admin):
                await _move_or_copy(admin, entry / _ADMIN, trashed.id)
                await _remove_leftovers(_aside_path(admin, trashed.id))
        elif in_use and not _exists(admin) and (not has_tree or _on_other_disk(path, entry)):
            await _move_or_copy(entry / _ADMIN, admin, trashed.id)
            await self.delete(trashed, repository)
        elif has_tree and not _exists(path) and _exists(admin) and _on_other_disk(admin, entry):
            _rename_aside(admin, trashed.id)
            await _remove_leftovers(_aside_path(admin, trashed.id))

    async def delete(self, trashed: TrashedWorktree, repository: GitDirectories | None) -> None:
        """Delete a worktree for good, its record last. `repository` is None if it is not registered."""
        if repository is not None:
            await anchors.remove_refs(repository, trashed.id)
        entry = self._directory / trashed.id
        for part in (entry / _TREE, entry / _ADMIN):
            if _exists(part):
                await asyncio.to_thread(remove_tree, part)
        await asyncio.to_thread(remove_tree, entry)

    def remove_empty_entries(self) -> None:
        """Delete entries that a kill left without a record."""
        for entry in self._directory.glob("*"):
            if not any(_exists(entry / part) for part in (_RECORD, _TREE, _ADMIN)):
                with suppress(OSError):
                    remove_tree(entry)

    def _paths(self, repository: GitDirectories, trashed: TrashedWorktree) -> tuple[Path, Path, Path]:
        """Return the former work tree, the entry in the trash, and the former directory of git."""
        admin = repository.common_dir / "worktrees" / trashed.name
        return Path(trashed.path), self._directory / trashed.id, admin


def _read(path: Path) -> TrashedWorktree | None:
    """Return the record in a file; None if it cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=TrashedWorktree)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        log.warning("a record in the trash cannot be read", path=str(path), reason=str(error))
        return None


async def _move_both(tree: tuple[Path, Path], admin: tuple[Path, Path], id: str) -> None:
    """Move the work tree and git's own directory, both or none. The work tree may be missing.

    A directory that had to be copied leaves its renamed original, which is deleted at the end.
    """
    has_tree = _exists(tree[0])
    if has_tree:
        await _move_or_copy(*tree, id)
    try:
        await _move_or_copy(*admin, id)
    except BaseException:
        if has_tree:
            await _move_or_copy(tree[1], tree[0], id)
            await _remove_leftovers(_aside_path(tree[0], id), _aside_path(tree[1], id))
        raise
    await _remove_leftovers(_aside_path(tree[0], id), _aside_path(admin[0], id))


def _exists(path: Path) -> bool:
    """Return whether a path exists; a dangling link counts too."""
    return os.path.lexists(path)


async def _move_or_copy(source: Path, target: Path, id: str) -> None:
    """Rename a directory, or copy it to another file system; raise RemoteFault if that fails."""
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise RemoteFault(f"{source} cannot be moved: {error.strerror}") from None
        await _copy_over(source, target, id)


async def _copy_over(source: Path, target: Path, id: str) -> None:
    """Move a directory to another file system: copy it, then rename the copy into place, the original aside.

    A failure leaves the original in place, removes the copy, and raises RemoteFault.
    """
    partial = _partial_path(target, id)
    copying = ["cp", "-a", "-T", "--", str(source), str(partial)]
    env = {"PATH": str(SERVER_PATH), "LC_ALL": "C"}
    ended = await run_process(copying, env=env, cwd="/", timeout=COPY_TIMEOUT_SECONDS, limit=1 << 20)
    if ended.code:
        await _remove_leftovers(partial)
        raise RemoteFault(f"{source} cannot be copied: {ended.errors.splitlines()[0]}")
    # No await between the two renames: either the copy or the original has its final name.
    try:
        os.rename(partial, target)
    except OSError as error:
        await _remove_leftovers(partial)
        raise RemoteFault(f"{source} cannot be moved to {target}: {error.strerror}") from None
    try:
        _rename_aside(source, id)
    except OSError as error:
        os.rename(target, partial)
        await _remove_leftovers(partial)
        raise RemoteFault(f"{source} cannot be moved: {error.strerror}") from None


def _rename_aside(directory: Path, id: str) -> None:
    """Rename a directory in one step, so that a partly deleted one is never taken for a complete one."""
    os.rename(directory, _aside_path(directory, id))


async def _remove_leftovers(*leftovers: Path) -> None:
    """Delete directories that are not needed any more; log a failure, and the next start tries again."""
    for leftover in leftovers:
        if _exists(leftover):
            try:
                await asyncio.to_thread(remove_tree, leftover)
            except OSError as error:
                log.warning(
                    "leftovers of a worktree could not be deleted", path=str(leftover), reason=str(error)
                )


def _partial_path(path: Path, id: str) -> Path:
    """Return the name of an incomplete copy; the id makes it unique."""
    return path.with_name(f".{path.name}.{id}.partial")


def _aside_path(path: Path, id: str) -> Path:
    """Return the name of an original that is about to be deleted."""
    return path.with_name(f".{path.name}.{id}.moved")


def _on_other_disk(one: Path, other: Path) -> bool:
    """Return whether two paths are on different file systems."""
    return one.lstat().st_dev != other.lstat().st_dev


def _points_to(path: Path, admin: Path) -> bool:
    """Return whether the directory `path` is the work tree of git's own directory `admin`."""
    return read_text(path / ".git") == f"gitdir: {admin}"
