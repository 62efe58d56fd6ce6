"""The objects that routes work with, created by `main` and stored in the application's state."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from ..agents.registry import AgentRegistry
from ..config import Config
from ..sandbox.grants import SandboxGrants
from ..sandbox.roots import WorkspaceRoots
from ..sessions.clones import RepositoryClones
from ..sessions.inbox import LiveInbox
from ..sessions.presence import ViewerPresence
from ..sessions.recorder import SessionRecorder
from ..sessions.registration import RepositoryRegistration
from ..sessions.rules import RuleSet
from ..sessions.sessions import Sessions
from ..sessions.worktrees import RepositoryWorktrees
from ..store.records import RecordStore
from .auth import Credentials
from .connections import UnauthenticatedConnections
from .derived_secrets import DerivedSecrets
from .traffic import TrafficCounters


@dataclass
class WebContext:
    """All objects that routes need. There is one per server."""

    config: Config
    sessions: Sessions
    records: RecordStore
    worktrees: RepositoryWorktrees
    registration: RepositoryRegistration
    clones: RepositoryClones
    credentials: Credentials
    recorder: SessionRecorder
    presence: ViewerPresence
    inbox: LiveInbox
    rules: RuleSet
    agents: AgentRegistry
    roots: WorkspaceRoots
    grants: SandboxGrants
    secrets: DerivedSecrets
    traffic: TrafficCounters
    connections: UnauthenticatedConnections
    url: str
    public_url: str


def context_of(connection: HTTPConnection) -> WebContext:
    """Return the context of the application that received the request."""
    context: WebContext = connection.app.state.context
    return context


async def _context(connection: HTTPConnection) -> WebContext:
    """Dependency: the context of the server."""
    return context_of(connection)


ContextDep = Annotated[WebContext, Depends(_context)]
