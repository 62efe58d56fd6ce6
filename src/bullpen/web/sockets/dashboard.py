"""WS /ws/dashboard: the sessions and the inbox, then every change of one, joined while the viewer is slow."""

import asyncio

from fastapi import APIRouter, Depends, WebSocket

from ...domain.inbox import InboxItem
from ...domain.snapshot import Snapshot
from ...intervals import intervals
from ...wire.browser import inbox_json, session_json
from ..context import WebContext, context_of
from ..scopes import Scope, allow
from .admission import AdmittedSocket, admitted, loops

router = APIRouter()

SHOWN = 200


@router.websocket("/ws/dashboard", dependencies=[Depends(allow(Scope.VIEW))])
async def dashboard_socket(websocket: WebSocket) -> None:
    context = context_of(websocket)
    async with admitted(websocket, context.credentials) as socket:
        await DashboardSocket(context, socket).run()


class DashboardSocket:
    """What changed since the viewer was last told: only the latest of each session."""

    def __init__(self, context: WebContext, socket: AdmittedSocket) -> None:
        self._context = context
        self._socket = socket
        self._changed: dict[str, Snapshot | None] = {}
        self._inbox: list[InboxItem] | None = None
        self._wake = asyncio.Event()

    async def run(self) -> None:
        sessions, inbox = self._context.sessions, self._context.inbox
        async with loops() as tasks, sessions.watching(self._note), inbox.watching(self._note_inbox):
            telling, beating = tasks.create_task(self._tell()), tasks.create_task(self._beat())
            async for _ in self._socket.messages():
                pass  # nothing to say here; reading notices the end
            telling.cancel()
            beating.cancel()

    def _note(self, session_id: str, snapshot: Snapshot | None) -> None:
        self._changed[session_id] = snapshot
        self._wake.set()

    def _note_inbox(self, items: list[InboxItem]) -> None:
        self._inbox = items
        self._wake.set()

    async def _tell(self) -> None:
        page = await self._context.records.list_sessions(limit=SHOWN)
        await self._socket.send({"type": "sessions", "sessions": page.sessions, "total": page.total})
        await self._tell_inbox(await self._context.inbox.items())
        while True:
            await self._wake.wait()
            self._wake.clear()
            changed, self._changed = self._changed, {}
            for session_id, snapshot in changed.items():
                if snapshot is None:
                    await self._socket.send({"type": "removed", "sessionId": session_id})
                else:
                    await self._socket.send({"type": "session", "session": session_json(snapshot)})
            items, self._inbox = self._inbox, None
            if items is not None:
                await self._tell_inbox(items)

    async def _tell_inbox(self, items: list[InboxItem]) -> None:
        """Always the whole of it: it is short, and then nothing can be missed."""
        await self._socket.send({"type": "inbox", "items": [inbox_json(item) for item in items]})

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(intervals().heartbeat)
            await self._socket.send({"type": "heartbeat"})
