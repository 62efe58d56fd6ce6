"""What the routes work with, made once by main and carried by the application."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from ..agents.registry import Registry
from ..config import Config
from ..sandbox.roots import WorkspaceRoots
from ..sessions.inbox import Inbox
from ..sessions.presence import Presence
from ..sessions.recorder import Recorder
from ..sessions.rules import Rules
from ..sessions.sessions import Sessions
from ..sessions.worktrees import Worktrees
from ..store.records import Records
from .auth import Credentials
from .connections import Connections
from .mint import Mint
from .traffic import Traffic


@dataclass
class Context:
    """The house as the doors see it."""

    config: Config
    sessions: Sessions
    records: Records
    worktrees: Worktrees
    credentials: Credentials
    recorder: Recorder
    presence: Presence
    inbox: Inbox
    rules: Rules
    agents: Registry
    roots: WorkspaceRoots
    mint: Mint
    traffic: Traffic
    connections: Connections
    url: str
    public_url: str


def context_of(connection: HTTPConnection) -> Context:
    context: Context = connection.app.state.context
    return context


ContextDep = Annotated[Context, Depends(context_of)]
