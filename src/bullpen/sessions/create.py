"""Makes a session: checks where it may live, then stores its first event."""

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
from ..domain.snapshot import Snapshot
from ..log.log import RequestAnswer, SessionLog
from ..sandbox.roots import WorkspaceRoots
from ..store.records import RecordStore
from ..workers.worker_services import WorkerServices
from .inheritance import queue_settings
from .session import Session, complete_order
from .sessions import Sessions

LOOK_BACK = 100  # sessions


class NewSession(Struct, frozen=True, kw_only=True):
    """What a person asks for: a repository's worktree, or any allowed directory."""

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


async def create_session(
    sessions: Sessions, records: RecordStore, order: NewSession, answer: RequestAnswer | None = None
) -> Session:
    """A new session, open, with the agent that was asked for and no other worker.

    Not before those of the last server are taken up: this one would be taken for one of them and begin twice.
    """
    await sessions.taken_up.wait()
    config, roots = sessions.workshop.config, sessions.workshop.roots
    repository = await _repository(records, order)
    session_id = new_id()
    start = _plan(roots, repository, order, session_id)
    inherited = queue.inherit_settings(Queue(), queue_settings(config, repository))
    if order.agent_id is None:
        return sessions.welcome(
            await SessionLog.create(sessions.store, session_id, [Draft(start), *inherited], answer)
        )
    agent = _agent(sessions.workshop, order, start.location_path)
    drafts = [Draft(replace(start, founder=agent.worker_id)), *inherited, agent]
    if order.continue_conversation:
        earlier = await _last_conversation(sessions, records, order.agent_id, start)
        drafts += [Draft(fact, agent.worker_id, agent.role) for fact in earlier]
    with sessions.slots.hold(session_id):
        session = sessions.welcome(await SessionLog.create(sessions.store, session_id, drafts, answer))
    session.resume()
    sessions.note(session)
    return session


def _agent(workshop: WorkerServices, order: NewSession, workspace: str) -> Draft:
    worker = AddWorker(
        worker_id=new_id(), type="agent", agent_id=order.agent_id, role=order.role, workspace=workspace
    )
    return commands.add_worker(Snapshot(id=""), complete_order(worker, workshop))


async def _last_conversation(
    sessions: Sessions, records: RecordStore, agent_id: str, start: SessionStart
) -> list[AgentSession]:
    """What an agent of this kind last talked about in this directory, to be gone back to (R80).

    A delegate goes back to what it began itself, and to nothing else (S-07).
    """
    definition = sessions.workshop.agents.get(agent_id)
    if start.started_by and _goes_back_by_itself(definition):
        return []
    page = await records.list_sessions(started_by=start.started_by, limit=LOOK_BACK)
    for listed in page.sessions:
        if listed["locationPath"] != start.location_path:
            continue
        snapshot = (await sessions.open(listed["id"])).snapshot
        for worker in snapshot.workers.values():
            conversation = snapshot.conversations.get(worker.id)
            if worker.agent_id == agent_id and conversation and conversation.acp_session_id:
                return [AgentSession(acp_session_id=conversation.acp_session_id, how="continue")]
    return [AgentSession(acp_session_id=new_id(), how="continue")] if _goes_back_by_itself(definition) else []


def _goes_back_by_itself(definition: AgentDefinition) -> bool:
    """An agent in a terminal may know by itself what was last said in a directory, whoever said it."""
    template = definition.continue_command
    return definition.kind == "pty" and bool(template) and not any("{sessionId}" in word for word in template)


def _plan(
    roots: WorkspaceRoots, repository: Repository | None, order: NewSession, session_id: str
) -> SessionStart:
    kind = order.type or ("worktree" if order.repo_id else "quick")
    commands.check_last_disconnect(order.on_last_disconnect)
    match kind:
        case "worktree":
            if repository is None:
                raise Invalid("a worktree session needs a repoId")
            directory = roots.directory(order.location_path or repository.path)
        case "quick":
            if order.repo_id:
                raise Invalid("a quick session has no repository; leave out repoId or the type")
            name = f"session-{session_id[:8]}"
            given = order.location_path
            directory = roots.directory(given) if given else roots.default_directory(name)
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
    )


async def _repository(records: RecordStore, order: NewSession) -> Repository | None:
    if not order.repo_id:
        return None
    repository = await records.repository(order.repo_id)
    if repository is None:
        raise NotFound(f"no repository {order.repo_id}")
    return repository
