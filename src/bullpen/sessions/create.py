"""Create a session: check its directory, then store its first events."""

from msgspec import Struct
from msgspec.structs import replace

from ..domain import commands, queue
from ..domain.agents import AgentDefinition
from ..domain.commands import AddWorker
from ..domain.conversation import AgentSession
from ..domain.errors import Invalid, NotFound
from ..domain.events import Draft, SessionStart
from ..domain.ids import new_id
from ..domain.queue import Queue
from ..domain.records import Repository
from ..domain.sandbox import SandboxLevel, check_delegate_level
from ..domain.snapshot import Snapshot
from ..log.log import SessionLog
from ..sandbox.roots import WorkspaceRoots
from ..store.answers import PendingAnswer
from ..store.records import RecordStore
from ..workers.worker_services import WorkerServices
from .queue_inheritance import inheritable_queue_settings
from .session import Session
from .sessions import Sessions
from .worker_orders import complete_order

MAX_SESSIONS_SEARCHED = 100  # the newest ones, for a conversation to continue


class NewSession(Struct, frozen=True, kw_only=True):
    """A request for a session in a worktree of a repository, or in any allowed directory."""

    type: str | None = None
    repo_id: str | None = None
    worktree_id: str | None = None
    location_path: str | None = None
    title: str | None = None
    on_last_disconnect: str = "keep"
    agent_id: str | None = None
    continue_conversation: bool = False
    role: str | None = None
    started_by: str | None = None
    sandbox: SandboxLevel | None = None  # the least level of its agents


async def create_session(
    sessions: Sessions, records: RecordStore, order: NewSession, answer: PendingAnswer[Snapshot] | None = None
) -> Session:
    """Create and open a session, with the requested agent as its only worker.

    Wait first until the workers of the previous server process are continued: otherwise this agent would be
    taken for one of them, and start twice.
    """
    await sessions.workers_resumed.wait()
    config, roots = sessions.services.config, sessions.services.roots
    repository = await _find_repository(records, order)
    session_id = new_id()
    start = _plan_start(roots, repository, order, session_id)
    inherited = queue.inherit_settings(Queue(), inheritable_queue_settings(config, repository))
    if order.agent_id is None:
        return sessions.add_new(
            await SessionLog.create(sessions.store, session_id, [Draft(start), *inherited], answer)
        )
    agent = _add_agent(sessions.services, order, start)
    drafts = [Draft(replace(start, founder=agent.worker_id)), *inherited, agent]
    if order.continue_conversation:
        earlier = await _last_conversation(sessions, records, order.agent_id, start)
        drafts += [Draft(fact, agent.worker_id, agent.role) for fact in earlier]
    with sessions.slots.hold(session_id):
        session = sessions.add_new(await SessionLog.create(sessions.store, session_id, drafts, answer))
    session.resume()
    sessions.restart_idle_timer(session)
    return session


def _add_agent(services: WorkerServices, order: NewSession, start: SessionStart) -> Draft:
    """Return the event that starts the requested agent."""
    worker = AddWorker(
        worker_id=new_id(),
        type="agent",
        agent_id=order.agent_id,
        role=order.role,
        workspace=start.location_path,
    )
    session = Snapshot(id="", repo_id=start.repo_id, sandbox=start.sandbox)
    (spawning,) = services.sandbox.with_levels(
        session, [commands.add_worker(session, complete_order(worker, services))]
    )
    return spawning


async def _last_conversation(
    sessions: Sessions, records: RecordStore, agent_id: str, start: SessionStart
) -> list[AgentSession]:
    """Return the event by which an agent continues its last conversation in this directory, if any.

    A delegate continues only conversations that it started itself: others may have secrets.
    """
    definition = sessions.services.agents.get(agent_id)
    if start.started_by and _continues_without_id(definition):
        return []
    page = await records.list_sessions(started_by=start.started_by, limit=MAX_SESSIONS_SEARCHED)
    for listed in page.sessions:
        if listed.location_path != start.location_path or listed.id in sessions.imported_ids:
            continue
        snapshot = (await sessions.open(listed.id)).snapshot
        for worker in snapshot.workers.values():
            conversation = snapshot.conversations.get(worker.id)
            if worker.agent_id == agent_id and conversation and conversation.acp_session_id:
                return [AgentSession(acp_session_id=conversation.acp_session_id, how="continue")]
    return (
        [AgentSession(acp_session_id=new_id(), how="continue")] if _continues_without_id(definition) else []
    )


def _continues_without_id(definition: AgentDefinition) -> bool:
    """Return whether a terminal agent continues the last conversation of a directory without a session id."""
    template = definition.continue_command
    return (
        definition.kind == "pty"
        and bool(template)
        and not any("{sessionId}" in argument for argument in template)
    )


def _plan_start(
    roots: WorkspaceRoots, repository: Repository | None, order: NewSession, session_id: str
) -> SessionStart:
    """Return the first event of the session. Raise Invalid if type, repository and directory do not fit."""
    kind = order.type or ("worktree" if order.repo_id else "quick")
    commands.check_last_disconnect(order.on_last_disconnect)
    if order.started_by:
        check_delegate_level(order.sandbox)
    match kind:
        case "worktree":
            if repository is None:
                raise Invalid("a worktree session needs a repoId")
            directory = roots.directory(order.location_path or repository.path)
        case "quick":
            if order.repo_id:
                raise Invalid("a quick session has no repository; leave out repoId or the type")
            name = f"session-{session_id[:8]}"
            requested = order.location_path
            directory = roots.directory(requested) if requested else roots.default_directory(name)
        case _:
            raise Invalid(f"a session's type is worktree or quick, not {kind}")
    title = commands.check_text(
        "title", order.title or directory.name or str(directory), commands.MAX_TITLE_LENGTH
    )
    return SessionStart(
        session_type=kind,
        location_path=str(directory),
        title=title,
        repo_id=order.repo_id,
        worktree_id=order.worktree_id,
        on_last_disconnect=order.on_last_disconnect,
        started_by=order.started_by,
        sandbox=order.sandbox,
    )


async def _find_repository(records: RecordStore, order: NewSession) -> Repository | None:
    """Return the repository that the order names, None if it names none; raise NotFound if unknown."""
    if not order.repo_id:
        return None
    repository = await records.repository(order.repo_id)
    if repository is None:
        raise NotFound(f"no repository {order.repo_id}")
    return repository
