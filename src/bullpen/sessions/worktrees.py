"""List, create, remove and restore the worktrees of registered repositories.

A worktree is created completely or not at all. A removed worktree can be restored from the trash.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog
from msgspec import Struct

from .. import clock
from ..domain.environment import PERSONAL, inherited_environment
from ..domain.errors import BullpenError, Conflict, Forbidden, Invalid, NotFound
from ..domain.ids import new_id
from ..domain.records import Repository, RepositorySettings
from ..domain.snapshot import Snapshot
from ..git import worktrees as git
from ..git.changes import WorktreeLoss, WorkTreeStatus, read_loss, read_status
from ..git.git_directories import GitDirectories, find_git_dir
from ..git.marked import marker_variables
from ..git.refs import check_branch
from ..git.worktrees import Worktree
from ..store.answers import PendingAnswer
from ..store.append import AlreadyAnswered
from ..store.records import RecordStore
from . import worktree_upkeep as upkeep
from .pending_worktrees import PendingWorktree, PendingWorktrees
from .sessions import Sessions
from .trash import TrashedWorktree, WorktreeTrash
from .worktree_making import CreatedWorktree, make_worktree, undo_make
from .worktree_plan import NewWorktree, choose_names, choose_path, choose_start
from .worktree_setup import copy_included, run_command

log = structlog.get_logger()

MAX_CONCURRENT_STATUS_READS = 4
STATUS_TIMEOUT_SECONDS = 5.0


class WorktreeReport(Struct, frozen=True, kw_only=True):
    """A worktree with its git status; `problem` tells the user what is wrong with it."""

    worktree: Worktree
    status: WorkTreeStatus | None = None
    problem: str | None = None


class RepositoryWorktrees:
    """Manages the worktrees of all repositories, with one change at a time per repository.

    `git worktree list` is authoritative; no other list is stored.
    """

    def __init__(self, records: RecordStore, sessions: Sessions) -> None:
        config = sessions.services.config
        self._records = records
        self._sessions = sessions
        self._roots = sessions.services.roots
        self._logs = config.home / "logs" / "worktrees"
        self.trash = WorktreeTrash(config.home / "trash")
        self._pending = PendingWorktrees(config.home / "worktrees")
        self._recovered = asyncio.Event()
        self.progress: dict[tuple[str, str], str] = {}  # the last progress line of git by repository and name
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.settings_lock = asyncio.Lock()  # a change reads the repository settings and writes all of them

    # Reading

    async def repository(self, repo_id: str) -> tuple[Repository, GitDirectories]:
        """Return a registered repository with its git directories, or raise NotFound."""
        repository = await self._records.repository(repo_id)
        if repository is None:
            raise NotFound(f"no repository {repo_id}")
        git_dir = self.settings(repo_id).git_dir
        git_dirs = Path(repository.path)
        return repository, GitDirectories.main(Path(git_dir) if git_dir else find_git_dir(git_dirs), git_dirs)

    def settings(self, repo_id: str) -> RepositorySettings:
        """Return the stored settings of a repository, or the defaults."""
        return self._sessions.services.repositories.get(repo_id) or RepositorySettings()

    async def list(self, repo_id: str) -> list[WorktreeReport]:
        """Return all worktrees of a repository with their git status."""
        _, git_dirs = await self.repository(repo_id)
        limit = asyncio.Semaphore(MAX_CONCURRENT_STATUS_READS)

        async def read(worktree: Worktree) -> WorktreeReport:
            async with limit:
                return await _read_report(worktree)

        return list(await asyncio.gather(*map(read, await git.list_worktrees(git_dirs))))

    async def get(self, repo_id: str, name: str) -> WorktreeReport:
        """Return a worktree by name with its git status. Raise NotFound if there is none."""
        _, git_dirs = await self.repository(repo_id)
        return await _read_report(await git.find_worktree(git_dirs, name))

    async def find_by_branch(self, repo_id: str, branch: str) -> Worktree | None:
        """Return the worktree that has the branch checked out, if there is one."""
        _, git_dirs = await self.repository(repo_id)
        found = (each for each in await git.list_worktrees(git_dirs) if each.branch == check_branch(branch))
        return next(found, None)

    async def find_by_directory(self, repo_id: str, directory: str) -> Worktree:
        """Return the existing worktree in a directory, or raise Invalid."""
        _, git_dirs = await self.repository(repo_id)
        real = self._roots.directory(directory)
        for each in await git.list_worktrees(git_dirs):
            if _real_path(each.path) == real:
                return each
        raise Invalid(f"{directory} is not a worktree of {git_dirs.work_tree}")

    # Changing

    @asynccontextmanager
    async def lock(self, repo_id: str) -> AsyncIterator[None]:
        """Hold the lock for changes of the worktrees of a repository, once recovery after a start is done."""
        await self._recovered.wait()
        async with self._locks[repo_id]:
            yield

    async def add(
        self, repo_id: str, order: NewWorktree, answer: PendingAnswer[WorktreeReport] | None = None
    ) -> WorktreeReport:
        """Create a worktree and store the answer of the request."""
        async with self.lock(repo_id):
            await self.require_unanswered(answer.key if answer else None)
            made = await self.make(repo_id, order)
            report = await _read_report(made.worktree)
            await self._store_answer(answer, report)
            self.confirm(made)
            return report

    async def make(self, repo_id: str, order: NewWorktree) -> CreatedWorktree:
        """Create a worktree: check it out, copy the included files and run the setup command. Or undo it all.

        The caller holds the lock, and calls `confirm` when its own work is stored, or `undo_make`.
        """
        repository, git_dirs = await self.repository(repo_id)
        if order.key and (made := await self._find_made_earlier(git_dirs, repo_id, order.key)):
            return made
        branch, name = await choose_names(git_dirs, order)
        pending = PendingWorktree(
            id=new_id(),
            repo_id=repo_id,
            key=order.key,
            name=name,
            path=str(choose_path(self._roots, git_dirs, name)),
            branch=branch,
            start=await choose_start(git_dirs, branch, order),
            begun_at=clock.now_ms(),
        )

        async def set_up(path: Path) -> list[str]:
            copied = await copy_included(self._sessions.services.files(repository.path), git_dirs, path)
            await self._run_configured_command("setup", repository, path, marker=pending.id)
            return copied

        self.progress[repo_id, name] = "starting"
        try:
            made = await make_worktree(
                git_dirs,
                pending,
                self._pending,
                set_up,
                lambda line: self._report_progress(repo_id, name, line),
            )
        finally:
            del self.progress[repo_id, name]
        log.info("worktree made", repository=repo_id, name=name, branch=branch, path=pending.path)
        return made

    def confirm(self, made: CreatedWorktree) -> None:
        """Delete the record of a pending worktree, because the request it was made for is stored."""
        self._pending.delete(made.pending)

    async def undo_make(self, repo_id: str, made: CreatedWorktree) -> None:
        """Undo `make`, because the request it was made for failed."""
        _, git_dirs = await self.repository(repo_id)
        await undo_make(git_dirs, made)
        self.confirm(made)

    async def remove(self, repo_id: str, name: str, force: bool) -> TrashedWorktree:
        """Move a worktree to the trash. Unless forced, raise Conflict if changes or commits would be lost."""
        async with self.lock(repo_id):
            repository, git_dirs = await self.repository(repo_id)
            worktree = await git.find_worktree(git_dirs, name)
            self._require_removable(worktree, git_dirs)
            await self._require_unused(worktree)
            if worktree.path.is_dir():
                if not force:
                    _require_no_loss(name, await read_loss(worktree.git_dirs, worktree.branch))
                await self._clean_up(repository, worktree.path, force)
                await self._require_unused(worktree)  # again, as a cleanup may take long
            trashed = await self.trash.move_in(repo_id, worktree)
        log.warning("worktree removed", repository=repo_id, name=name, force=force, trash=trashed.id)
        return trashed

    async def restore(
        self,
        repo_id: str,
        name: str,
        id: str | None = None,
        answer: PendingAnswer[WorktreeReport] | None = None,
    ) -> WorktreeReport:
        """Move a worktree from the trash back to its path, and store the answer of the request."""
        async with self.lock(repo_id):
            await self.require_unanswered(answer.key if answer else None)
            _, git_dirs = await self.repository(repo_id)
            made = await self._find_made_earlier(git_dirs, repo_id, answer.key) if answer else None
            made = made or await self._restore_from_trash(git_dirs, self.trash.get(repo_id, name, id), answer)
            report = await _read_report(made.worktree)
            await self._store_answer(answer, report)
            self.confirm(made)
        log.info("worktree restored", repository=repo_id, name=name)
        return report

    async def _restore_from_trash(
        self, git_dirs: GitDirectories, trashed: TrashedWorktree, answer: PendingAnswer[WorktreeReport] | None
    ) -> CreatedWorktree:
        """Restore a worktree from the trash.

        The record is written once the target is known to be free, so that a repeated request finds its
        result.
        """
        self._roots.require_movable(Path(trashed.path))
        await self.trash.require_restorable(git_dirs, trashed)
        pending = PendingWorktree(
            id=new_id(),
            repo_id=trashed.repo_id,
            key=answer.key if answer else None,
            name=trashed.name,
            path=trashed.path,
            branch=trashed.branch or "",
            start=None,
            begun_at=clock.now_ms(),
            done=True,
        )
        self._pending.save(pending)
        try:
            await self.trash.restore(git_dirs, trashed)
        except BaseException:
            self._pending.delete(pending)
            raise
        return CreatedWorktree(
            worktree=await git.find_worktree(git_dirs, trashed.name), pending=pending, copied=[]
        )

    # Recovery and expiry

    async def recover(self) -> None:
        """Undo or finish what the previous server process was doing; every change waits for this."""
        try:
            await upkeep.recover(
                self._pending, self.trash, self._git_directories, self._roots.require_movable
            )
        finally:
            self._recovered.set()

    async def empty_trash_forever(self) -> None:
        """Delete expired worktrees from the trash, now and every hour."""
        await upkeep.empty_trash_forever(self.trash, self._git_directories)

    # Helpers

    async def _git_directories(self, repo_id: str) -> GitDirectories:
        """Return the git directories of a registered repository, or raise NotFound."""
        return (await self.repository(repo_id))[1]

    async def _find_made_earlier(
        self, git_dirs: GitDirectories, repo_id: str, key: str
    ) -> CreatedWorktree | None:
        """Return the worktree that an earlier try of the same request made, unless it was removed since."""
        if pending := self._pending.find_finished(repo_id, key):
            for worktree in await git.list_worktrees(git_dirs):
                if str(worktree.path) == pending.path:
                    return CreatedWorktree(worktree=worktree, pending=pending, copied=[])
            self._pending.delete(pending)
        return None

    async def require_unanswered(self, key: str | None) -> None:
        """Raise AlreadyAnswered if the same request was answered while this one waited for the lock."""
        if key and (stored := await self._sessions.store.stored_answer(key)):
            raise AlreadyAnswered(stored)

    async def _store_answer(
        self, answer: PendingAnswer[WorktreeReport] | None, report: WorktreeReport
    ) -> None:
        """Store the answer while the lock is held, so that a repeated request finds all or nothing."""
        if answer:
            status, body = answer.render(report)
            await self._records.store_answer(
                PendingAnswer(answer.key, answer.body_hash, lambda _: (status, body))
            )

    def _require_removable(self, worktree: Worktree, git_dirs: GitDirectories) -> None:
        """Raise Conflict or Forbidden for the repository's own directory, and for a path it must not have."""
        if worktree.is_main:
            raise Conflict("this is the repository's own directory, which is never removed")
        real = _real_path(worktree.path)  # git reads it from a file that an agent may have written
        if not self._roots.contains(real) or git_dirs.work_tree.is_relative_to(real):
            log.warning("security: a worktree names a directory that it must not use", path=str(real))
            raise Forbidden(f"{worktree.path} cannot be a worktree of {git_dirs.work_tree}")
        self._roots.require_movable(real)
        pointer = worktree.path / ".git"
        if worktree.path.exists() and not (pointer.is_file() and not pointer.is_symlink()):
            raise Conflict(f"{worktree.path} has no .git file, so it is not a worktree; nothing was removed")

    async def _require_unused(self, worktree: Worktree) -> None:
        """Raise Conflict if an active session or worker uses the worktree."""
        real = _real_path(worktree.path)
        for session_id in await self._records.live_sessions():
            if user := _find_user_of(real, (await self._sessions.open(session_id)).snapshot):
                raise Conflict(f"{user} works in {worktree.path}; end it first")

    async def _clean_up(self, repository: Repository, path: Path, force: bool) -> None:
        """Run the cleanup command; if the removal is forced, only log its failure."""
        try:
            await self._run_configured_command("cleanup", repository, path)
        except Conflict as failed:
            if not force:
                raise
            log.warning("cleanup failed", repository=repository.id, path=str(path), reason=str(failed))

    async def _run_configured_command(
        self, kind: str, repository: Repository, path: Path, marker: str | None = None
    ) -> None:
        """Run the setup or cleanup command of the repository, if it has one."""
        settings = self.settings(repository.id)
        command = settings.setup if kind == "setup" else settings.cleanup
        if command:
            self._report_progress(repository.id, path.name, f"running the {kind} command")
            record = self._logs / repository.id / f"{path.name}.{kind}.log"
            environment = _environment(settings, repository, path) | marker_variables(marker)
            sandbox = self._sessions.services.sandbox
            level = sandbox.repository_level(repository.id)
            profile = sandbox.planner.plan(level, repository.id, str(_real_path(path)), environment)
            limits = self._sessions.services.children.limits
            await run_command(kind, command, path, environment, record, profile, limits)

    def _report_progress(self, repo_id: str, name: str, line: str) -> None:
        """Show a line as the progress of a worktree that is being created."""
        if (repo_id, name) in self.progress:
            self.progress[repo_id, name] = line


def _real_path(path: Path) -> Path:
    """Return a path with its symbolic links resolved."""
    return Path(os.path.realpath(path))


def _find_user_of(directory: Path, snapshot: Snapshot) -> str | None:
    """Return the name of the worker or session that uses the directory, or None.

    A worker can have a workspace other than that of its session.
    """
    for worker in snapshot.workers.values():
        if (worker.alive or worker.again) and Path(worker.workspace).is_relative_to(directory):
            return f"{worker.role} of the session {snapshot.title}"
    if Path(snapshot.location_path).is_relative_to(directory):
        return f"the session {snapshot.title}"
    return None


async def _read_report(worktree: Worktree) -> WorktreeReport:
    """Read the status of a worktree; a failure becomes its `problem`, so that the others are still listed."""
    if not worktree.path.is_dir():
        return WorktreeReport(worktree=worktree, problem=f"the directory {worktree.path} is gone")
    lock = worktree.git_dirs.git_dir / "index.lock"
    problem = None
    if lock.exists():
        problem = f"{lock} exists: git is running, or was killed; in this case remove the file"
    try:
        return WorktreeReport(
            worktree=worktree,
            status=await read_status(worktree.git_dirs, STATUS_TIMEOUT_SECONDS),
            problem=problem,
        )
    except BullpenError as error:
        return WorktreeReport(worktree=worktree, problem=problem or str(error))


def _require_no_loss(name: str, loss: WorktreeLoss) -> None:
    """Raise Conflict with details if uncommitted changes or unmerged commits would be lost."""
    if sentence := loss.describe():
        raise Conflict(
            f"the worktree {name} has {sentence}; with force it is moved to the trash for 7 days"
        ).with_details({"changes": loss.changes, "commits": loss.commits, "unfinished": loss.unfinished})


def _environment(settings: RepositorySettings, repository: Repository, path: Path) -> dict[str, str]:
    """Return the environment for the setup and cleanup commands."""
    ours = {"BULLPEN_REPOSITORY": repository.path, "BULLPEN_WORKTREE": str(path)}
    return {**inherited_environment(os.environ, PERSONAL), **settings.env, **ours}
