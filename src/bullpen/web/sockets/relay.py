"""`/ws/relay`: start and prompt several agents of one session by their roles. One session per socket."""

import asyncio
from typing import Any

from fastapi import APIRouter, Depends, WebSocket

from ...domain.commands import AddWorker
from ...domain.errors import BullpenError, Conflict, Forbidden, Invalid, NotFound
from ...domain.ids import new_id
from ...domain.prompts import Prompt, find_addressee
from ...domain.snapshot import Worker
from ...domain.states import SessionStatus, WorkerState
from ...sessions.create import NewSession, create_session
from ...sessions.session import Session
from ...wire import relay
from ..context import WebContext, context_of
from ..scopes import Scope, allow
from .admission import AdmittedSocket, admit, socket_tasks
from .relay_notices import RelayNotices

router = APIRouter()

END_REASON = "user requested"
NORMAL_CLOSURE = 1000  # close code of RFC 6455


@router.websocket("/ws/relay", dependencies=[Depends(allow(Scope.VIEW))])
async def relay_socket(websocket: WebSocket) -> None:
    """Accept a client of the relay."""
    context = context_of(websocket)
    async with admit(websocket, context.credentials) as socket:
        await RelaySocket(context, socket).run()


class RelaySocket:
    """A socket of the relay. It handles one request at a time, and sends notices by following the log.

    The server closes it when its session has ended.
    """

    def __init__(self, context: WebContext, socket: AdmittedSocket) -> None:
        self._context = context
        self._socket = socket
        self._session: Session | None = None
        self._following: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Handle requests one by one until the client disconnects; answer a failed one with an error."""
        async with socket_tasks() as tasks:
            async for message in self._socket.messages():
                try:
                    await self._handle(message, tasks)
                except BullpenError as error:
                    await self._socket.send(relay.error_notice(message, error))
            if self._following is not None:
                self._following.cancel()

    async def _handle(self, message: dict[str, Any], tasks: asyncio.TaskGroup) -> None:
        """Execute one request of the client; raise Forbidden if its credential does not allow it."""
        request = relay.read_request(message)
        if (
            not isinstance(request, relay.ListAgents | relay.GetAgent)
            and self._socket.principal.scope < Scope.OPERATE
        ):
            raise Forbidden("this needs the scope operate")
        if isinstance(request, relay.CreateSession):
            await self._create(tasks)
            return
        session = await self._attach(request.session_id, tasks)
        match request:
            case relay.SpawnAgent():
                await self._spawn(session, request)
            case relay.MessageAgent():
                await self._message(session, request)
            case relay.TerminateAgent():
                await self._terminate_agent(session, request.role)
            case relay.ListAgents():
                await self._socket.send(relay.agent_list_notice(session.snapshot))
            case relay.GetAgent():
                worker = _agent_in_role(session, request.role)
                await self._socket.send(relay.agent_notice(session.id, worker))
            case relay.TerminateSession():
                await self._terminate(session)

    async def _create(self, tasks: asyncio.TaskGroup) -> None:
        """Create a quick session and follow it; raise Conflict if the socket has a session already."""
        self._require_no_session()
        order = NewSession(type="quick")
        session = await create_session(self._context.sessions, self._context.records, order)
        self._follow(session, 0, tasks)

    async def _attach(self, session_id: str, tasks: asyncio.TaskGroup) -> Session:
        """Return the session with this id; follow it from now on if it is active.

        Raise Conflict if it is active and the socket has another session.
        """
        session = await self._context.sessions.get(session_id)
        if session is not self._session and session.snapshot.status is SessionStatus.ACTIVE:
            self._require_no_session()
            self._follow(session, session.log.head, tasks)
        return session

    def _require_no_session(self) -> None:
        """Raise Conflict if this socket has a session."""
        if self._session is not None:
            raise Conflict(f"this socket has the session {self._session.id}; open another socket")

    def _follow(self, session: Session, after: int, tasks: asyncio.TaskGroup) -> None:
        """Start to send notices of a session; close the socket after the last one."""
        self._session = session
        follower = session.log.follow(after)

        async def following() -> None:
            with self._context.presence.viewing(session):
                await RelayNotices(session, self._socket).send_all(follower)
            await self._close()

        self._following = tasks.create_task(following())

    async def _spawn(self, session: Session, request: relay.SpawnAgent) -> None:
        """Start an agent in a role; raise Invalid without a workspace.

        A directory that is not allowed is recorded as its failure.
        """
        if not request.workspace.strip():
            raise Invalid("an agent needs a workspace")
        order = AddWorker(
            worker_id=new_id(),
            type="agent",
            role=request.role,
            agent_id=request.agent_id,
            workspace=request.workspace,
        )
        await session.spawn_agent(order, self._context.roots.new_directory)

    async def _message(self, session: Session, request: relay.MessageAgent) -> None:
        """Send a prompt to the agent in a role. Raise Conflict if it is not active."""
        worker = _agent_in_role(session, request.role)
        if worker.state is not WorkerState.ACTIVE:
            raise Conflict(f"the agent in role {worker.role} is {worker.state}; it must be active")
        by = self._socket.principal.name
        order = Prompt(text=request.content, prompt_id=new_id(), worker_id=worker.id, sender=by)
        await session.prompt(order)

    async def _terminate_agent(self, session: Session, role: str) -> None:
        """End the agent in a role; if it ended before, send the notice again."""
        try:
            worker = _agent_in_role(session, role)
        except NotFound:
            if not _had_role(session, role):
                raise
            await self._socket.send(relay.agent_terminated_notice(session.id, role, "already terminated"))
            return
        await session.terminate_worker(worker.id, END_REASON)

    async def _terminate(self, session: Session) -> None:
        """End the session; if it ended before, send the notice again."""
        if session.snapshot.status is SessionStatus.ACTIVE:
            await session.terminate(SessionStatus.COMPLETED, "user_request")
        elif session is not self._session:
            reason = session.snapshot.end_reason or ""
            await self._socket.send(relay.session_terminated_notice(session.id, reason, 0))
            if self._session is None:
                await self._close()

    async def _close(self) -> None:
        """Close the socket, because its session has ended."""
        await self._socket.close(NORMAL_CLOSURE, "the session has ended")


def _agent_in_role(session: Session, role: str) -> Worker:
    """Return the agent in a role, or raise NotFound."""
    worker = find_addressee(session.snapshot, None, role)
    assert worker is not None  # because a role was given
    return worker


def _had_role(session: Session, role: str) -> bool:
    """Return whether the session ever had an agent in this role."""
    return any(each.role == role and each.type == "agent" for each in session.snapshot.workers.values())
