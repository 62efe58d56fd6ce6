"""What the routes work with, made once by main and carried by the application."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from ..agents.registry import AgentRegistry
from ..config import Config
from ..sandbox.roots import WorkspaceRoots
from ..sessions.inbox import LiveInbox
from ..sessions.presence import ViewerPresence
from ..sessions.recorder import SessionRecorder
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
    """The house as the doors see it."""

    config: Config
    sessions: Sessions
    records: RecordStore
    worktrees: RepositoryWorktrees
    credentials: Credentials
    recorder: SessionRecorder
    presence: ViewerPresence
    inbox: LiveInbox
    rules: RuleSet
    agents: AgentRegistry
    roots: WorkspaceRoots
    mint: DerivedSecrets
    traffic: TrafficCounters
    connections: UnauthenticatedConnections
    url: str
    public_url: str


def context_of(connection: HTTPConnection) -> WebContext:
    context: WebContext = connection.app.state.context
    return context


ContextDep = Annotated[WebContext, Depends(context_of)]
