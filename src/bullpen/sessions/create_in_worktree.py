"""Makes a session in a worktree: the one that was named, the one with a branch, or a new one."""

from msgspec import Struct
from msgspec.structs import replace

from ..domain.errors import Invalid
from ..git.worktrees import Worktree
from ..log.log import RequestAnswer
from ..store.records import RecordStore
from .create import NewSession, create_session
from .session import Session, require_agent
from .sessions import Sessions
from .worktree_making import CreatedWorktree
from .worktree_plan import NewWorktree
from .worktrees import RepositoryWorktrees


class RequestedWorktree(Struct, frozen=True, kw_only=True):
    """The worktree a session shall live in: a directory that is one, or what `NewWorktree` says."""

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
    wanted: RequestedWorktree | None,
    answer: RequestAnswer | None = None,
) -> Session:
    """A session in a worktree. When it cannot be made, neither is the worktree."""
    if wanted is None or not order.repo_id:
        if wanted is not None:
            raise Invalid("a worktree needs a repoId")
        return await create_session(sessions, records, await _named(worktrees, order), answer)
    if order.agent_id is not None:
        require_agent(sessions.workshop, order.agent_id)  # before a worktree is made and set up for it
    async with worktrees.changing(order.repo_id):
        key = answer.key if answer else None
        await worktrees.require_unanswered(key)
        made = await _find_or_make(worktrees, order.repo_id, wanted, key)
        worktree = made.worktree if isinstance(made, CreatedWorktree) else made
        try:
            session = await create_session(sessions, records, _in(order, worktree), answer)
        except BaseException:
            if isinstance(made, CreatedWorktree):
                await worktrees.take_back(order.repo_id, made)
            raise
        if isinstance(made, CreatedWorktree):
            worktrees.settle(made)
        return session


async def _named(worktrees: RepositoryWorktrees, order: NewSession) -> NewSession:
    """The order with the directory of the worktree it names; one that gives a directory has decided that."""
    if not order.repo_id or not order.worktree_id or order.location_path:
        return order
    return _in(order, (await worktrees.get(order.repo_id, order.worktree_id)).worktree)


async def _find_or_make(
    worktrees: RepositoryWorktrees, repo_id: str, wanted: RequestedWorktree, key: str | None
) -> Worktree | CreatedWorktree:
    if wanted.mode == "directory":
        if not wanted.path:
            raise Invalid("the mode directory needs a path")
        return await worktrees.at(repo_id, wanted.path)
    takes_existing = wanted.mode in ("existing", "either") and wanted.branch
    if takes_existing and (found := await worktrees.on_branch(repo_id, wanted.branch or "")):
        return found
    return await worktrees.make(
        repo_id,
        NewWorktree(
            branch=wanted.branch,
            base=wanted.base,
            name=wanted.name,
            mode=wanted.mode,
            prompt=wanted.prompt,
            key=key,
        ),
    )


def _in(order: NewSession, worktree: Worktree) -> NewSession:
    name = worktree.name if not worktree.is_main else order.title
    return replace(
        order,
        type="worktree",
        worktree_id=worktree.name,
        location_path=str(worktree.path),
        title=order.title or name,
    )
