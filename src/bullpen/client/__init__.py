"""The typed Python client: async `Client`, and `SyncClient` for code that does not await."""

from .client import Client
from .discovery import Discovery, Server
from .errors import ConnectionLost, ServerNotRunning
from .frames import Activity, Back, Exit, Frame, History, Lost, Output, Refused, Size
from .shapes import (
    Agent,
    Event,
    EventPage,
    Health,
    LoginCode,
    NewToken,
    OwnersToken,
    Permission,
    Prompted,
    Question,
    Queue,
    QueueItem,
    Repository,
    Session,
    Token,
    Worker,
)
from .sync import SyncClient, SyncTerminal

__all__ = [
    "Activity",
    "Agent",
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
    "Permission",
    "Prompted",
    "Question",
    "Queue",
    "QueueItem",
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
