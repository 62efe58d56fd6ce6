"""Create a session in a worktree: a named one, the one with a given branch, or a new one."""

from msgspec import Struct
from msgspec.structs import replace

from ..domain.errors import Invalid
from ..domain.snapshot import Snapshot
from ..git.worktrees import Worktree
from ..store.answers import PendingAnswer
from ..store.records import RecordStore
from .create import NewSession, create_session
from .session import Session
from .sessions import Sessions
from .worker_orders import require_agent
from .worktree_making import CreatedWorktree
from .worktree_plan import NewWorktree
from .worktrees import RepositoryWorktrees


class RequestedWorktree(Struct, frozen=True, kw_only=True):
    """The worktree for a new session: the existing one at `path`, or one described as in `NewWorktree`."""

    mode: str = "new"
    branch: str | None = None
    base: str | None = None
    name: str | None = None
    path: str | None = None
    prompt: str | None = None


async def create_in_worktree(
    sessions: Sessions,
    records: RecordStore,
    worktrees: RepositoryWorktrees,
    order: NewSession,
    requested: RequestedWorktree | None,
    answer: PendingAnswer[Snapshot] | None = None,
) -> Session:
    """Create a session, in the requested worktree if there is one.

    If that fails, a new worktree is removed again. Raise Invalid for a worktree without a repository.
    """
    if requested is None or not order.repo_id:
        if requested is not None:
            raise Invalid("a worktree needs a repoId")
        return await create_session(sessions, records, await _with_named_worktree(worktrees, order), answer)
    if order.agent_id is not None:
        require_agent(sessions.services, order.agent_id)  # fail early, before a worktree is created for it
    async with worktrees.lock(order.repo_id):
        key = answer.key if answer else None
        await worktrees.require_unanswered(key)
        made = await _find_or_make(worktrees, order.repo_id, requested, key)
        worktree = made.worktree if isinstance(made, CreatedWorktree) else made
        try:
            session = await create_session(sessions, records, _in_worktree(order, worktree), answer)
        except BaseException:
            if isinstance(made, CreatedWorktree):
                await worktrees.undo_make(order.repo_id, made)
            raise
        if isinstance(made, CreatedWorktree):
            worktrees.confirm(made)
        return session


async def _with_named_worktree(worktrees: RepositoryWorktrees, order: NewSession) -> NewSession:
    """Return the order with the directory of the worktree it names, unless it names a directory itself."""
    if not order.repo_id or not order.worktree_id or order.location_path:
        return order
    return _in_worktree(order, (await worktrees.get(order.repo_id, order.worktree_id)).worktree)


async def _find_or_make(
    worktrees: RepositoryWorktrees, repo_id: str, requested: RequestedWorktree, key: str | None
) -> Worktree | CreatedWorktree:
    """Return the requested worktree: the one at a path or with a branch, else a newly made one.

    Raise Invalid for the mode `directory` without a path.
    """
    if requested.mode == "directory":
        if not requested.path:
            raise Invalid("the mode directory needs a path")
        return await worktrees.find_by_directory(repo_id, requested.path)
    takes_existing = requested.mode in ("existing", "either") and requested.branch
    if takes_existing and (found := await worktrees.find_by_branch(repo_id, requested.branch or "")):
        return found
    return await worktrees.make(
        repo_id,
        NewWorktree(
            branch=requested.branch,
            base=requested.base,
            name=requested.name,
            mode=requested.mode,
            prompt=requested.prompt,
            key=key,
        ),
    )


def _in_worktree(order: NewSession, worktree: Worktree) -> NewSession:
    """Return the order with the directory and name of the worktree."""
    name = worktree.name if not worktree.is_main else order.title
    return replace(
        order,
        type="worktree",
        worktree_id=worktree.name,
        location_path=str(worktree.path),
        title=order.title or name,
    )
