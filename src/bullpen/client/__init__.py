"""The typed Python client: async `Client`, and `SyncClient` for code that does not await."""

from .client import Client
from .discovery import Discovery, Server
from .errors import ConnectionLost, ServerNotRunning
from .frames import Activity, Back, Exit, Frame, History, Lost, Output, Refused, Size
from .shapes import (
    Event,
    EventPage,
    Health,
    LoginCode,
    NewToken,
    OwnersToken,
    Repository,
    Session,
    Token,
    Worker,
)
from .sync import SyncClient, SyncTerminal

__all__ = [
    "Activity",
    "Back",
    "Client",
    "ConnectionLost",
    "Discovery",
    "Event",
    "EventPage",
    "Exit",
    "Frame",
    "Health",
    "History",
    "LoginCode",
    "Lost",
    "NewToken",
    "Output",
    "OwnersToken",
    "Refused",
    "Repository",
    "Server",
    "ServerNotRunning",
    "Session",
    "Size",
    "SyncClient",
    "SyncTerminal",
    "Token",
    "Worker",
]
