"""Provide the asyncio client, with one method for each request that the server answers.

Every request survives a restart of the server; `follow` and `terminal` survive any number of restarts.
Modules that need WebSockets are imported on first use, because importing them takes longer than a request.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from ..domain.errors import BullpenError
from .agent_calls import AgentCalls
from .agent_definitions import AgentDefinitionCalls
from .discovery import ServerDiscovery
from .files import FileCalls
from .frames import OutputFrame
from .images import ImageCalls
from .inbox import InboxCalls
from .projects import ProjectCalls
from .queue_calls import QueueCalls
from .recordings import RecordingCalls
from .repositories import RepositoryCalls
from .rest import RestClient, RestRequest
from .roots import RootCalls
from .sandbox import SandboxCalls
from .search_calls import SearchCalls
from .shapes import (
    Event,
    EventPage,
    Health,
    ImportResult,
    LoginCode,
    News,
    Port,
    PortList,
    SavedSessions,
    Session,
    SessionPage,
    Settings,
    Worker,
    WorkerList,
)
from .timeline import TimelineCalls
from .tokens import TokenCalls
from .worktrees import WorktreeCalls

if TYPE_CHECKING:
    from .terminal import Terminal

_SESSIONS_PER_PAGE = 100
_EVENTS_PER_PAGE = 1000
_UNAVAILABLE = 503


class Client(
    AgentCalls,
    AgentDefinitionCalls,
    QueueCalls,
    ImageCalls,
    TimelineCalls,
    RepositoryCalls,
    InboxCalls,
    SearchCalls,
    TokenCalls,
    RecordingCalls,
    FileCalls,
    WorktreeCalls,
    RootCalls,
    SandboxCalls,
    ProjectCalls,
):
    """A connection to the server that the settings name, or to the server at `url`."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        discovery: ServerDiscovery | None = None,
        patience: float = 30.0,
        on_refusal: Callable[[BullpenError], None] | None = None,
    ) -> None:
        """`patience`: seconds for which a request is repeated while the server is away or not ready.

        `on_refusal` is called before a request waits, for example because the server cannot
        reach its database.
        """
        if discovery is None:
            discovery = ServerDiscovery.at(url, token or "") if url else ServerDiscovery.from_settings()
        self._discovery = discovery
        self._rest = RestClient(discovery, patience)
        if on_refusal:
            self._rest.on_refusal = on_refusal

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._rest.close()

    async def health(self) -> Health:
        """Return whether the server is ready. The request is not repeated."""
        request = RestRequest("GET", "/api/health", accepted_statuses=frozenset({_UNAVAILABLE}))
        return await self._rest.call(Health, request, patience=0)

    async def settings(self) -> Settings:
        """Return the settings that the server runs with."""
        return await self._rest.call(Settings, RestRequest("GET", "/api/settings"))

    async def set_log_level(self, level: str) -> None:
        """Change the least severe level that the server logs, until its next start."""
        await self._rest.send(RestRequest("PATCH", "/api/settings", {"logLevel": level}))

    async def login_code(self) -> LoginCode:
        """Create a code that logs in one browser, once, within ten minutes."""
        return await self._rest.call(LoginCode, RestRequest("POST", "/api/login-codes"))

    # Sessions

    async def sessions(
        self, *, status: Iterable[str] = (), repo_id: str | None = None, q: str | None = None
    ) -> list[Session]:
        """Return all sessions that match, newest first; `q` is text in their title."""
        found: list[Session] = []
        query = _without_empty(status=",".join(status), repoId=repo_id, q=q, limit=str(_SESSIONS_PER_PAGE))
        while True:
            query["offset"] = str(len(found))
            page = await self._rest.call(SessionPage, RestRequest("GET", "/api/sessions", query=query))
            found += page.sessions
            if not page.sessions or len(found) >= page.total:
                return found

    async def session(self, session_id: str) -> Session:
        """Return one session with its workers."""
        return await self._rest.call(
            Session, RestRequest("GET", _session_path(session_id), query={"brief": "true"})
        )

    async def create_session(
        self,
        *,
        location_path: str | None = None,
        repo_id: str | None = None,
        worktree_id: str | None = None,
        branch: str | None = None,
        worktree: Mapping[str, str | None] | None = None,
        agent_id: str | None = None,
        role: str | None = None,
        title: str | None = None,
        on_last_disconnect: str | None = None,
        find_repository: bool = False,
        key: str | None = None,
    ) -> Session:
        """Create a session in a directory, a repository or a worktree, with an agent if `agent_id` is given.

        `find_repository`: if the directory belongs to a registered repository, use that repository.
        """
        body = _without_empty(
            type="worktree" if repo_id else None,  # without a type the server starts the default agent
            locationPath=location_path,
            repoId=repo_id,
            worktreeId=worktree_id,
            branch=branch,
            worktree=worktree,
            agentId=agent_id,
            role=role,
            title=title,
            onLastDisconnect=on_last_disconnect,
        )
        query = {"findRepository": "true"} if find_repository else {}
        # Creating a worktree and running its setup command may take long.
        in_worktree = worktree is not None or bool(branch)
        request = RestRequest("POST", "/api/sessions", body, query=query, key=key, is_long=in_worktree)
        return await self._rest.call(Session, request)

    async def change_session(
        self, session_id: str, *, title: str | None = None, on_last_disconnect: str | None = None
    ) -> Session:
        """Change the title of a session, or what happens when its last viewer leaves: keep or terminate."""
        body = _without_empty(title=title, onLastDisconnect=on_last_disconnect)
        return await self._rest.call(Session, RestRequest("PATCH", _session_path(session_id), body))

    async def complete_session(self, session_id: str, *, key: str | None = None) -> Session:
        """End a session gracefully and return it."""
        request = RestRequest("POST", f"{_session_path(session_id)}/complete", {}, key=key)
        return await self._rest.call(Session, request)

    async def reopen_session(self, session_id: str, *, key: str | None = None) -> Session:
        """Make a session that has ended active again and return it; its workers can then be restarted."""
        request = RestRequest("POST", f"{_session_path(session_id)}/reopen", {}, key=key)
        return await self._rest.call(Session, request)

    async def restart_session(
        self, session_id: str, *, continue_conversation: bool | None = None, key: str | None = None
    ) -> Worker:
        """Start the first agent of a session again and return it."""
        body = _without_empty(continueConversation=continue_conversation)
        request = RestRequest("POST", f"{_session_path(session_id)}/restart", body, key=key)
        return await self._rest.call(Worker, request)

    async def delete_session(self, session_id: str, *, purge: bool = False) -> Session | None:
        """Cancel a session; `purge` also removes its history. None: a repeated request found it removed."""
        query = {"purge": "true"} if purge else {}
        return await self._rest.remove(Session, RestRequest("DELETE", _session_path(session_id), query=query))

    async def import_sessions(self, entries: list[Any], *, key: str | None = None) -> ImportResult:
        """Import the entries of a `sessions.json` file; no agent or terminal is started."""
        request = RestRequest("POST", "/api/import", {"sessions": entries}, key=key)
        return await self._rest.call(ImportResult, request)

    async def saved_sessions(self) -> SavedSessions:
        """Return the sessions that agent-console has saved in the home directory of the server's user."""
        return await self._rest.call(SavedSessions, RestRequest("GET", "/api/import"))

    async def leave_session(self, session_id: str, *, key: str | None = None) -> None:
        """Report that a viewer has closed the session: one with `terminate` then ends soon."""
        await self._rest.send(RestRequest("POST", f"{_session_path(session_id)}/leave", {}, key=key))

    # Workers

    async def workers(self, session_id: str) -> list[Worker]:
        """Return the workers of a session."""
        found = await self._rest.call(WorkerList, RestRequest("GET", f"{_session_path(session_id)}/workers"))
        return found.workers

    async def worker(self, session_id: str, worker_id: str) -> Worker:
        """Return one worker of a session."""
        return await self._rest.call(Worker, RestRequest("GET", _worker_path(session_id, worker_id)))

    async def add_worker(
        self,
        session_id: str,
        type: str = "terminal",
        *,
        name: str | None = None,
        role: str | None = None,
        agent_id: str | None = None,
        workspace: str | None = None,
        file_path: str | None = None,
        url: str | None = None,
        command: Iterable[str] = (),
        cols: int | None = None,
        rows: int | None = None,
        key: str | None = None,
    ) -> Worker:
        """Start a worker in a session: a terminal, an agent, a diff, a document (markdown) or a web page.

        A terminal runs `command`, a program and its arguments, in place of a shell. A web page is at `url`.
        """
        body = _without_empty(
            type=type,
            name=name,
            role=role,
            agentId=agent_id,
            workspace=workspace,
            filePath=file_path,
            url=url,
            command=list(command) or None,
            cols=cols,
            rows=rows,
        )
        return await self._rest.call(
            Worker, RestRequest("POST", f"{_session_path(session_id)}/workers", body, key=key)
        )

    async def end_worker(self, session_id: str, worker_id: str) -> Worker | None:
        """End a worker, return it once its process has ended; None if a repeated request found it purged."""
        return await self._rest.remove(Worker, RestRequest("DELETE", _worker_path(session_id, worker_id)))

    async def restart_worker(
        self,
        session_id: str,
        worker_id: str,
        *,
        continue_conversation: bool | None = None,
        key: str | None = None,
    ) -> Worker:
        """Restart a worker that ended. With `continue_conversation` given, restart a running agent too."""
        body = _without_empty(continueConversation=continue_conversation)
        request = RestRequest("POST", f"{_worker_path(session_id, worker_id)}/restart", body, key=key)
        return await self._rest.call(Worker, request)

    async def output(self, session_id: str, worker_id: str, after: int = 0) -> AsyncIterator[OutputFrame]:
        """Yield what a terminal has printed so far, from an offset on, as far as its recording is kept."""
        request = RestRequest(
            "GET", f"{_worker_path(session_id, worker_id)}/output", query={"after": str(after)}
        )
        async with self._rest.stream(request) as response:
            offset = int(response.headers["x-bullpen-offset"])
            async for data in response.body_chunks():
                yield OutputFrame(offset, data)
                offset += len(data)

    async def ports(self, session_id: str) -> list[Port]:
        """Return the TCP ports on which programs of a session listen now, lowest first."""
        return (
            await self._rest.call(PortList, RestRequest("GET", f"{_session_path(session_id)}/ports"))
        ).ports

    def terminal(
        self, session_id: str, worker_id: str, after: int | None = None, *, may_skip: bool = False
    ) -> AbstractAsyncContextManager["Terminal"]:
        """Open a worker's terminal: its history and live output, or its output from offset `after` on.

        `may_skip`: a reader that is far behind receives the current screen instead of every byte.
        """
        from .terminal import open_terminal  # noqa: PLC0415

        return open_terminal(self._discovery, session_id, worker_id, after, may_skip)

    # Events

    async def events(
        self,
        session_id: str,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int = _EVENTS_PER_PAGE,
        types: Iterable[str] = (),
    ) -> EventPage:
        """Return one page of events with `after` < seq < `before`, optionally only of some types."""
        query = _without_empty(
            after=str(after),
            before=None if before is None else str(before),
            limit=str(limit),
            types=",".join(types),
        )
        return await self._rest.call(
            EventPage, RestRequest("GET", f"{_session_path(session_id)}/events", query=query)
        )

    def follow(
        self, session_id: str, after: int = 0, *, looking: bool = False
    ) -> AsyncGenerator[Event, None]:
        """Yield every event after seq `after`, once and in order, until the caller closes the generator.

        `looking`: a person reads the events, so the server sends no notifications about this session.
        """
        from .event_follower import EventFollower  # noqa: PLC0415
        from .reconnecting_socket import ReconnectingSocket  # noqa: PLC0415

        link = ReconnectingSocket(self._discovery, lambda: f"/ws/session/{quote(session_id, safe='')}")
        return EventFollower(link, lambda seq: self.events(session_id, after=seq), after, looking).events()

    def dashboard(self) -> AsyncGenerator[News, None]:
        """Yield all sessions, then every change of a session; after a reconnection, all sessions again."""
        from .dashboard import Dashboard  # noqa: PLC0415
        from .reconnecting_socket import ReconnectingSocket  # noqa: PLC0415

        return Dashboard(ReconnectingSocket(self._discovery, lambda: "/ws/dashboard"), self.sessions).news()


def _session_path(session_id: str) -> str:
    """Return the URL path of a session."""
    return f"/api/sessions/{quote(session_id, safe='')}"


def _worker_path(session_id: str, worker_id: str) -> str:
    """Return the URL path of a worker."""
    return f"{_session_path(session_id)}/workers/{quote(worker_id, safe='')}"


def _without_empty(**fields: Any) -> dict[str, Any]:
    """Return the fields that have a value; the server has defaults for the others."""
    return {name: value for name, value in fields.items() if value not in (None, "")}
