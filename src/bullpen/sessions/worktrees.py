"""The worktrees of registered repositories: made whole or not at all, removed so that it can be undone."""

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
from ..git.places import GitDirectories, find_git_dir
from ..git.process import marked
from ..git.refs import check_branch
from ..git.worktrees import Worktree
from ..store.answers import KeptAnswer
from ..store.append import AlreadyAnswered
from ..store.records import RecordStore
from . import worktree_upkeep as upkeep
from .pending_worktrees import PendingWorktree, PendingWorktrees
from .sessions import Sessions
from .trash import TrashedWorktree, WorktreeTrash
from .worktree_making import CreatedWorktree, make_worktree, take_back
from .worktree_plan import NewWorktree, choose_names, choose_path, choose_start
from .worktree_setup import copy_included, run_command

log = structlog.get_logger()

LOOKS_AT_ONCE = 4
LOOK_SECONDS = 5.0


class WorktreeReport(Struct, frozen=True, kw_only=True):
    """A worktree as a look found it; `problem` says what is wrong with it, for a person."""

    worktree: Worktree
    status: WorkTreeStatus | None = None
    problem: str | None = None


class RepositoryWorktrees:
    """One change at a time per repository. `git worktree list` is the truth; nothing is kept beside it."""

    def __init__(self, records: RecordStore, sessions: Sessions) -> None:
        config = sessions.workshop.config
        self._records = records
        self._sessions = sessions
        self._roots = sessions.workshop.roots
        self._logs = config.home / "logs" / "worktrees"
        self.trash = WorktreeTrash(config.home / "trash")
        self._errands = PendingWorktrees(config.home / "worktrees")
        self._mended = asyncio.Event()
        self.making: dict[tuple[str, str], str] = {}  # how far each has come, in git's words
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.deciding = asyncio.Lock()  # held to change `settings`, which are made from what they were

    # Looking

    async def repository(self, repo_id: str) -> tuple[Repository, GitDirectories]:
        """A registered repository, and where git works on it."""
        repository = await self._records.repository(repo_id)
        if repository is None:
            raise NotFound(f"no repository {repo_id}")
        git_dir = self.settings(repo_id).git_dir
        place = Path(repository.path)
        return repository, GitDirectories.main(Path(git_dir) if git_dir else find_git_dir(place), place)

    def settings(self, repo_id: str) -> RepositorySettings:
        return self._sessions.workshop.repositories.get(repo_id) or RepositorySettings()

    async def list(self, repo_id: str) -> list[WorktreeReport]:
        _, place = await self.repository(repo_id)
        limit = asyncio.Semaphore(LOOKS_AT_ONCE)

        async def look(worktree: Worktree) -> WorktreeReport:
            async with limit:
                return await _look(worktree)

        return list(await asyncio.gather(*map(look, await git.list_worktrees(place))))

    async def get(self, repo_id: str, name: str) -> WorktreeReport:
        _, place = await self.repository(repo_id)
        return await _look(await git.find_worktree(place, name))

    async def on_branch(self, repo_id: str, branch: str) -> Worktree | None:
        """The worktree that has a branch checked out."""
        _, place = await self.repository(repo_id)
        found = (each for each in await git.list_worktrees(place) if each.branch == check_branch(branch))
        return next(found, None)

    async def at(self, repo_id: str, directory: str) -> Worktree:
        """The worktree in a directory that is there already."""
        _, place = await self.repository(repo_id)
        real = self._roots.directory(directory)
        for each in await git.list_worktrees(place):
            if _real(each.path) == real:
                return each
        raise Invalid(f"{directory} is no worktree of {place.work_tree}")

    # Changing

    @asynccontextmanager
    async def changing(self, repo_id: str) -> AsyncIterator[None]:
        """Nobody else changes the worktrees of this repository meanwhile."""
        await self._mended.wait()
        async with self._locks[repo_id]:
            yield

    async def add(
        self, repo_id: str, order: NewWorktree, answer: KeptAnswer[WorktreeReport] | None = None
    ) -> WorktreeReport:
        async with self.changing(repo_id):
            await self.require_unanswered(answer.key if answer else None)
            made = await self.make(repo_id, order)
            seen = await _look(made.worktree)
            await self._keep(answer, seen)
            self.settle(made)
            return seen

    async def make(self, repo_id: str, order: NewWorktree) -> CreatedWorktree:
        """Makes a worktree, whole: checked out, with the files a person wants there, set up. Else nothing.

        Whoever asked calls `settle` once it is answered, or `take_back`.
        """
        repository, place = await self.repository(repo_id)
        if order.key and (made := await self._made_before(place, repo_id, order.key)):
            return made
        branch, name = await choose_names(place, order)
        errand = PendingWorktree(
            id=new_id(),
            repo_id=repo_id,
            key=order.key,
            name=name,
            path=str(choose_path(self._roots, place, name)),
            branch=branch,
            start=await choose_start(place, branch, order),
            begun_at=clock.now_ms(),
        )

        async def furnish(path: Path) -> list[str]:
            copied = await copy_included(self._sessions.workshop.files(repository.path), place, path)
            await self._run("setup", repository, path, marker=errand.id)
            return copied

        self.making[repo_id, name] = "beginning"
        try:
            made = await make_worktree(
                place, errand, self._errands, furnish, lambda line: self._progress(repo_id, name, line)
            )
        finally:
            del self.making[repo_id, name]
        log.info("worktree made", repository=repo_id, name=name, branch=branch, path=errand.path)
        return made

    def settle(self, made: CreatedWorktree) -> None:
        """What it was made for is stored."""
        self._errands.forget(made.errand)

    async def take_back(self, repo_id: str, made: CreatedWorktree) -> None:
        """Undoes `make`, because what it was made for failed."""
        _, place = await self.repository(repo_id)
        await take_back(place, made)
        self.settle(made)

    async def remove(self, repo_id: str, name: str, force: bool) -> TrashedWorktree:
        """Moves a worktree to the trash; refused when something would go with it, unless that is wanted."""
        async with self.changing(repo_id):
            repository, place = await self.repository(repo_id)
            worktree = await git.find_worktree(place, name)
            self._require_removable(worktree, place)
            await self._require_nobody_in(worktree)
            if worktree.path.is_dir():
                if not force:
                    _require_no_loss(name, await read_loss(worktree.place, worktree.branch))
                await self._clean_up(repository, worktree.path, force)
                await self._require_nobody_in(worktree)  # a cleanup may take long
            trashed = await self.trash.take(repo_id, worktree)
        log.warning("worktree removed", repository=repo_id, name=name, force=force, trash=trashed.id)
        return trashed

    async def restore(
        self, repo_id: str, name: str, id: str | None = None, answer: KeptAnswer[WorktreeReport] | None = None
    ) -> WorktreeReport:
        async with self.changing(repo_id):
            await self.require_unanswered(answer.key if answer else None)
            _, place = await self.repository(repo_id)
            made = await self._made_before(place, repo_id, answer.key) if answer else None
            made = made or await self._take_out(place, self.trash.get(repo_id, name, id), answer)
            seen = await _look(made.worktree)
            await self._keep(answer, seen)
            self.settle(made)
        log.info("worktree restored", repository=repo_id, name=name)
        return seen

    async def _take_out(
        self, place: GitDirectories, trashed: TrashedWorktree, answer: KeptAnswer[WorktreeReport] | None
    ) -> CreatedWorktree:
        """Noted once nothing else can be there: a request that comes again finds what it has restored."""
        await self.trash.require_room(place, trashed)
        errand = PendingWorktree(
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
        self._errands.note(errand)
        try:
            await self.trash.restore(place, trashed)
        except BaseException:
            self._errands.forget(errand)
            raise
        return CreatedWorktree(
            worktree=await git.find_worktree(place, trashed.name), errand=errand, copied=[]
        )

    # What nobody asks for

    async def mend(self) -> None:
        """Before anything is changed: what the last server was doing is finished or taken back."""
        try:
            await upkeep.mend(self._errands, self.trash, self._place)
        finally:
            self._mended.set()

    async def tend(self) -> None:
        await upkeep.tend(self.trash, self._place)

    # What the above need

    async def _place(self, repo_id: str) -> GitDirectories:
        return (await self.repository(repo_id))[1]

    async def _made_before(self, place: GitDirectories, repo_id: str, key: str) -> CreatedWorktree | None:
        """What an earlier try of the same request made, unless somebody removed it since."""
        if errand := self._errands.done_for(repo_id, key):
            for worktree in await git.list_worktrees(place):
                if str(worktree.path) == errand.path:
                    return CreatedWorktree(worktree=worktree, errand=errand, copied=[])
            self._errands.forget(errand)
        return None

    async def require_unanswered(self, key: str | None) -> None:
        """Refuses a request that came twice at once, when the other has had its effect."""
        if key and (stored := await self._sessions.store.answer(key)):
            raise AlreadyAnswered(stored)

    async def _keep(self, answer: KeptAnswer[WorktreeReport] | None, seen: WorktreeReport) -> None:
        """While nobody else may change anything: a second try finds either nothing or its answer."""
        if answer:
            status, body = answer.render(seen)
            await self._records.answer_only(
                KeptAnswer(answer.key, answer.body_hash, lambda _: (status, body))
            )

    def _require_removable(self, worktree: Worktree, place: GitDirectories) -> None:
        if worktree.is_main:
            raise Conflict("this is the repository's own directory, which is never removed")
        real = _real(worktree.path)  # it is what a file says that an agent may have written
        if not self._roots.contains(real) or place.work_tree.is_relative_to(real):
            log.warning("security: a worktree claims a directory it cannot have", path=str(real))
            raise Forbidden(f"{worktree.path} cannot be a worktree of {place.work_tree}")
        pointer = worktree.path / ".git"
        if worktree.path.exists() and not (pointer.is_file() and not pointer.is_symlink()):
            raise Conflict(f"{worktree.path} is not what git says: it has no .git file; nothing was removed")

    async def _require_nobody_in(self, worktree: Worktree) -> None:
        real = _real(worktree.path)
        for session_id in await self._records.live_sessions():
            if who := _who_works_in(real, (await self._sessions.open(session_id)).snapshot):
                raise Conflict(f"{who} works in {worktree.path}; end it first")

    async def _clean_up(self, repository: Repository, path: Path, force: bool) -> None:
        try:
            await self._run("cleanup", repository, path)
        except Conflict as failed:
            if not force:
                raise
            log.warning("cleanup failed", repository=repository.id, path=str(path), reason=str(failed))

    async def _run(self, what: str, repository: Repository, path: Path, marker: str | None = None) -> None:
        settings = self.settings(repository.id)
        command = settings.setup if what == "setup" else settings.cleanup
        if command:
            self._progress(repository.id, path.name, f"running the {what} command")
            record = self._logs / repository.id / f"{path.name}.{what}.log"
            environment = _environment(settings, repository, path) | marked(marker)
            await run_command(what, command, path, environment, record)

    def _progress(self, repo_id: str, name: str, line: str) -> None:
        if (repo_id, name) in self.making:
            self.making[repo_id, name] = line


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _who_works_in(directory: Path, snapshot: Snapshot) -> str | None:
    """A worker has a place of its own: that of its session may be anywhere."""
    for worker in snapshot.workers.values():
        if (worker.alive or worker.again) and Path(worker.workspace).is_relative_to(directory):
            return f"{worker.role} of the session {snapshot.title}"
    if Path(snapshot.location_path).is_relative_to(directory):
        return f"the session {snapshot.title}"
    return None


async def _look(worktree: Worktree) -> WorktreeReport:
    """What is wrong with a worktree is part of the answer: the others are still worth seeing."""
    if not worktree.path.is_dir():
        return WorktreeReport(worktree=worktree, problem=f"the directory {worktree.path} is gone")
    lock = worktree.place.git_dir / "index.lock"
    problem = None
    if lock.exists():
        problem = f"{lock} is there: git is at work, or a git that died left it; then remove the file"
    try:
        return WorktreeReport(
            worktree=worktree, status=await read_status(worktree.place, LOOK_SECONDS), problem=problem
        )
    except BullpenError as error:
        return WorktreeReport(worktree=worktree, problem=problem or str(error))


def _require_no_loss(name: str, loss: WorktreeLoss) -> None:
    if sentence := loss.sentence():
        raise Conflict(
            f"the worktree {name} has {sentence}; with force it is moved to the trash for 7 days"
        ).with_details({"changes": loss.changes, "commits": loss.commits, "unfinished": loss.unfinished})


def _environment(settings: RepositorySettings, repository: Repository, path: Path) -> dict[str, str]:
    ours = {"BULLPEN_REPOSITORY": repository.path, "BULLPEN_WORKTREE": str(path)}
    return {**inherited_environment(os.environ, PERSONAL), **settings.env, **ours}
