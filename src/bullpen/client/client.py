"""The typed client: one method for each thing the server can be asked or told.

Every request survives a restart of the server; `follow` and `terminal` survive any number of them.
What needs sockets is imported when it is used: that takes longer than a request.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from ..domain.errors import BullpenError
from .agent_calls import AgentCalls
from .discovery import ServerDiscovery
from .files import FileCalls
from .frames import OutputFrame
from .inbox import InboxCalls
from .recordings import RecordingCalls
from .rest import RestClient, RestRequest
from .roots import RootCalls
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
    Repository,
    RepositoryList,
    Session,
    SessionPage,
    Settings,
    Worker,
    WorkerList,
)
from .tokens import TokenCalls
from .worktrees import WorktreeCalls

if TYPE_CHECKING:
    from .terminal import Terminal

_PAGE = 100
_EVENTS = 1000
_STARTING = 503


class Client(
    AgentCalls, InboxCalls, SearchCalls, TokenCalls, RecordingCalls, FileCalls, WorktreeCalls, RootCalls
):
    """Reaches the server the settings say, or the one at a given url."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        discovery: ServerDiscovery | None = None,
        patience: float = 30.0,
        on_refusal: Callable[[BullpenError], None] | None = None,
    ) -> None:
        """`on_refusal` is told why a request waits, as while the server cannot reach its database."""
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
        """Whether the server is ready; one try."""
        request = RestRequest("GET", "/api/health", telling=frozenset({_STARTING}))
        return await self._rest.call(Health, request, patience=0)

    async def settings(self) -> Settings:
        return await self._rest.call(Settings, RestRequest("GET", "/api/settings"))

    async def login_code(self) -> LoginCode:
        return await self._rest.call(LoginCode, RestRequest("POST", "/api/login-codes"))

    # Sessions

    async def sessions(
        self, *, status: Iterable[str] = (), repo_id: str | None = None, q: str | None = None
    ) -> list[Session]:
        """All of them, newest first."""
        found: list[Session] = []
        query = _given(status=",".join(status), repoId=repo_id, q=q, limit=str(_PAGE))
        while True:
            query["offset"] = str(len(found))
            page = await self._rest.call(SessionPage, RestRequest("GET", "/api/sessions", query=query))
            found += page.sessions
            if not page.sessions or len(found) >= page.total:
                return found

    async def session(self, session_id: str) -> Session:
        return await self._rest.call(
            Session, RestRequest("GET", _session(session_id), query={"brief": "true"})
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
        """`find_repository`: in the registered repository that the directory is of, if there is one."""
        body = _given(
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
        in_worktree = worktree is not None or bool(branch)  # which may have to be made and set up first
        request = RestRequest("POST", "/api/sessions", body, query=query, key=key, long=in_worktree)
        return await self._rest.call(Session, request)

    async def change_session(
        self, session_id: str, *, title: str | None = None, on_last_disconnect: str | None = None
    ) -> Session:
        body = _given(title=title, onLastDisconnect=on_last_disconnect)
        return await self._rest.call(Session, RestRequest("PATCH", _session(session_id), body))

    async def complete_session(self, session_id: str, *, key: str | None = None) -> Session:
        """Ends a session gracefully."""
        request = RestRequest("POST", f"{_session(session_id)}/complete", {}, key=key)
        return await self._rest.call(Session, request)

    async def restart_session(
        self, session_id: str, *, continue_conversation: bool | None = None, key: str | None = None
    ) -> Worker:
        """The next run of its first agent."""
        body = _given(continueConversation=continue_conversation)
        request = RestRequest("POST", f"{_session(session_id)}/restart", body, key=key)
        return await self._rest.call(Worker, request)

    async def delete_session(self, session_id: str, *, purge: bool = False) -> Session | None:
        """Cancels a session; its history stays unless it is purged. None: it was gone when asked again."""
        query = {"purge": "true"} if purge else {}
        return await self._rest.remove(Session, RestRequest("DELETE", _session(session_id), query=query))

    async def import_sessions(self, entries: list[Any], *, key: str | None = None) -> ImportResult:
        """Takes in the entries of a `sessions.json`; nothing is started."""
        request = RestRequest("POST", "/api/import", {"sessions": entries}, key=key)
        return await self._rest.call(ImportResult, request)

    # Workers

    async def workers(self, session_id: str) -> list[Worker]:
        found = await self._rest.call(WorkerList, RestRequest("GET", f"{_session(session_id)}/workers"))
        return found.workers

    async def worker(self, session_id: str, worker_id: str) -> Worker:
        return await self._rest.call(Worker, RestRequest("GET", _worker(session_id, worker_id)))

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
        cols: int | None = None,
        rows: int | None = None,
        key: str | None = None,
    ) -> Worker:
        body = _given(
            type=type,
            name=name,
            role=role,
            agentId=agent_id,
            workspace=workspace,
            filePath=file_path,
            cols=cols,
            rows=rows,
        )
        return await self._rest.call(
            Worker, RestRequest("POST", f"{_session(session_id)}/workers", body, key=key)
        )

    async def end_worker(self, session_id: str, worker_id: str) -> Worker | None:
        """The worker once its process is gone. None: it was purged when asked again."""
        return await self._rest.remove(Worker, RestRequest("DELETE", _worker(session_id, worker_id)))

    async def restart_worker(
        self,
        session_id: str,
        worker_id: str,
        *,
        continue_conversation: bool | None = None,
        key: str | None = None,
    ) -> Worker:
        """The next run of a worker that ended; if its conversation is spoken of, of a living agent too."""
        body = _given(continueConversation=continue_conversation)
        request = RestRequest("POST", f"{_worker(session_id, worker_id)}/restart", body, key=key)
        return await self._rest.call(Worker, request)

    async def output(self, session_id: str, worker_id: str, after: int = 0) -> AsyncIterator[OutputFrame]:
        """What a terminal has printed so far, from an offset on, as far as it is kept."""
        request = RestRequest("GET", f"{_worker(session_id, worker_id)}/output", query={"after": str(after)})
        async with self._rest.stream(request) as response:
            offset = int(response.headers["x-bullpen-offset"])
            async for data in response.pieces():
                yield OutputFrame(offset, data)
                offset += len(data)

    async def ports(self, session_id: str) -> list[Port]:
        """What programs of a session listen on now, lowest first."""
        return (await self._rest.call(PortList, RestRequest("GET", f"{_session(session_id)}/ports"))).ports

    def terminal(
        self, session_id: str, worker_id: str, after: int | None = None, *, may_skip: bool = False
    ) -> AbstractAsyncContextManager["Terminal"]:
        """A worker's terminal: its history and live output, or its output from an offset on.

        One who only shows it may skip: far behind, it gets the screen as it is then instead of every byte.
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
        limit: int = _EVENTS,
        types: Iterable[str] = (),
    ) -> EventPage:
        query = _given(
            after=str(after),
            before=None if before is None else str(before),
            limit=str(limit),
            types=",".join(types),
        )
        return await self._rest.call(
            EventPage, RestRequest("GET", f"{_session(session_id)}/events", query=query)
        )

    def follow(
        self, session_id: str, after: int = 0, *, looking: bool = False
    ) -> AsyncGenerator[Event, None]:
        """Every event above `after`, each once and in order, for as long as one listens.

        `looking`: a person reads along, and need not be notified of what waits in the session.
        """
        from .following import EventFollower  # noqa: PLC0415
        from .reconnecting_socket import ReconnectingSocket  # noqa: PLC0415

        link = ReconnectingSocket(self._discovery, lambda: f"/ws/session/{quote(session_id, safe='')}")
        return EventFollower(link, lambda seq: self.events(session_id, after=seq), after, looking).events()

    def dashboard(self) -> AsyncGenerator[News, None]:
        """All sessions, then every change of one, for as long as one listens; all again after a loss."""
        from .dashboard import Dashboard  # noqa: PLC0415
        from .reconnecting_socket import ReconnectingSocket  # noqa: PLC0415

        return Dashboard(ReconnectingSocket(self._discovery, lambda: "/ws/dashboard"), self.sessions).news()

    # Repositories

    async def repositories(self) -> list[Repository]:
        found = await self._rest.call(RepositoryList, RestRequest("GET", "/api/repositories"))
        return found.repositories

    async def add_repository(
        self, path: str, *, name: str | None = None, key: str | None = None
    ) -> Repository:
        body = _given(path=path, name=name)
        return await self._rest.call(Repository, RestRequest("POST", "/api/repositories", body, key=key))

    async def edit_repository(
        self,
        repo_id: str,
        *,
        name: str | None = None,
        agent_id: str | None = None,
        env: Mapping[str, str | None] | None = None,
        setup: str | None = None,
        cleanup: str | None = None,
        queue: Mapping[str, Any] | None = None,
    ) -> Repository:
        """Says what holds for all its sessions and worktrees; what is left out stays."""
        path = f"/api/repositories/{quote(repo_id, safe='')}"
        said = {
            "name": name,
            "agentId": agent_id,
            "env": env,
            "setup": setup,
            "cleanup": cleanup,
            "queue": queue,
        }
        body = {field: value for field, value in said.items() if value is not None}  # an empty one says: none
        return await self._rest.call(Repository, RestRequest("PATCH", path, body))

    async def delete_repository(self, repo_id: str) -> None:
        """Forgets a repository; its files stay."""
        await self._rest.order(RestRequest("DELETE", f"/api/repositories/{quote(repo_id, safe='')}"))


def _session(session_id: str) -> str:
    return f"/api/sessions/{quote(session_id, safe='')}"


def _worker(session_id: str, worker_id: str) -> str:
    return f"{_session(session_id)}/workers/{quote(worker_id, safe='')}"


def _given(**fields: Any) -> dict[str, Any]:
    """Only what was said; the server has the defaults."""
    return {name: value for name, value in fields.items() if value not in (None, "")}
