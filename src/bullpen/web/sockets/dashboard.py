"""`/ws/dashboard`: send all sessions and the inbox, then every change of them."""

import asyncio
from contextlib import suppress
from typing import Any

from fastapi import APIRouter, Depends, WebSocket

from ...domain.errors import NotFound
from ...domain.inbox import InboxItem
from ...domain.snapshot import Snapshot
from ...intervals import intervals
from ...wire.browser import inbox_json, shown_session_json
from ..context import WebContext, context_of
from ..scopes import Scope, allow
from .admission import AdmittedSocket, admit, socket_tasks

router = APIRouter()

MAX_SESSIONS = 200


@router.websocket("/ws/dashboard", dependencies=[Depends(allow(Scope.VIEW))])
async def dashboard_socket(websocket: WebSocket) -> None:
    """Accept a client of the dashboard."""
    context = context_of(websocket)
    async with admit(websocket, context.credentials) as socket:
        await DashboardSocket(context, socket).run()


class DashboardSocket:
    """Sends the dashboard to one client. Of changes that wait, only the latest of a session is sent."""

    def __init__(self, context: WebContext, socket: AdmittedSocket) -> None:
        self._context = context
        self._socket = socket
        self._changed: dict[str, Snapshot | None] = {}
        self._inbox: list[InboxItem] | None = None
        self._items: set[tuple[str, str]] = set()  # session and id of each item that was sent
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Send the sessions, their changes and heartbeats until the client disconnects; ignore messages."""
        sessions, inbox = self._context.sessions, self._context.inbox
        async with (
            socket_tasks() as tasks,
            sessions.watching(self._on_session),
            inbox.watching(self._on_inbox),
        ):
            sending, heartbeat = (
                tasks.create_task(self._send_changes()),
                tasks.create_task(self._send_heartbeats()),
            )
            async for _ in self._socket.messages():
                pass  # messages are ignored; reading them detects the disconnect
            sending.cancel()
            heartbeat.cancel()

    def _on_session(self, session_id: str, snapshot: Snapshot | None) -> None:
        """Remember the latest snapshot of a session, to be sent."""
        self._changed[session_id] = snapshot
        self._wake.set()

    def _on_inbox(self, items: list[InboxItem]) -> None:
        """Remember the latest inbox, to be sent."""
        self._inbox = items
        self._wake.set()

    async def _send_changes(self) -> None:
        """Send all sessions and the inbox, then their changes; of several changes only the newest."""
        page = await self._context.records.list_sessions(limit=MAX_SESSIONS)
        await self._context.inbox.read_unseen()
        sessions = [self._session(each) for each in page.sessions]
        await self._socket.send({"type": "sessions", "sessions": sessions, "total": page.total})
        await self._send_inbox(await self._context.inbox.items())
        while True:
            await self._wake.wait()
            self._wake.clear()
            changed, self._changed = self._changed, {}
            for session_id, snapshot in changed.items():
                if snapshot is None:
                    await self._socket.send({"type": "removed", "sessionId": session_id})
                else:
                    await self._socket.send({"type": "session", "session": self._session(snapshot)})
            items, self._inbox = self._inbox, None
            if items is not None:
                await self._send_attention(items)
                await self._send_inbox(items)

    def _session(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return a session as a JSON object."""
        return shown_session_json(snapshot, self._context.inbox.attention(snapshot))

    async def _send_attention(self, items: list[InboxItem]) -> None:
        """Send the sessions that need something else, because items of the inbox came or went."""
        changed = self._items ^ _keys(items)
        for session_id in dict.fromkeys(session_id for session_id, _ in changed):
            with suppress(NotFound):  # it was purged
                snapshot = (await self._context.sessions.get(session_id)).snapshot
                await self._socket.send({"type": "session", "session": self._session(snapshot)})

    async def _send_inbox(self, items: list[InboxItem]) -> None:
        """Send the whole inbox; it is short, so there are no partial updates."""
        self._items = _keys(items)
        await self._socket.send({"type": "inbox", "items": [inbox_json(item) for item in items]})

    async def _send_heartbeats(self) -> None:
        """Send a heartbeat at a fixed interval, so that the client notices a dead connection."""
        while True:
            await asyncio.sleep(intervals().heartbeat)
            await self._socket.send({"type": "heartbeat"})


def _keys(items: list[InboxItem]) -> set[tuple[str, str]]:
    """Return the session and the id of each item."""
    return {(item.session_id, item.id) for item in items}
