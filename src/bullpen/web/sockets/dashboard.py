"""WS /ws/dashboard: the sessions, then every change of one, joined while the viewer is slow."""

import asyncio

from fastapi import APIRouter, Depends, WebSocket

from ...domain.snapshot import Snapshot
from ...wire.browser import session_json
from ..context import Context, context_of
from ..scopes import Scope, allow
from .admission import Socket, admitted, loops

router = APIRouter()

SHOWN = 200


@router.websocket("/ws/dashboard", dependencies=[Depends(allow(Scope.VIEW))])
async def dashboard_socket(websocket: WebSocket) -> None:
    context = context_of(websocket)
    async with admitted(websocket, context.credentials) as socket:
        await Dashboard(context, socket).run()


class Dashboard:
    """What changed since the viewer was last told: only the latest of each session."""

    def __init__(self, context: Context, socket: Socket) -> None:
        self._context = context
        self._socket = socket
        self._changed: dict[str, Snapshot | None] = {}
        self._wake = asyncio.Event()

    async def run(self) -> None:
        async with loops() as tasks, self._context.sessions.watching(self._note):
            telling = tasks.create_task(self._tell())
            async for _ in self._socket.messages():
                pass  # nothing to say here; reading notices the end
            telling.cancel()

    def _note(self, session_id: str, snapshot: Snapshot | None) -> None:
        self._changed[session_id] = snapshot
        self._wake.set()

    async def _tell(self) -> None:
        page = await self._context.records.list_sessions(limit=SHOWN)
        await self._socket.send({"type": "sessions", "sessions": page.sessions, "total": page.total})
        while True:
            await self._wake.wait()
            self._wake.clear()
            changed, self._changed = self._changed, {}
            for session_id, snapshot in changed.items():
                if snapshot is None:
                    await self._socket.send({"type": "removed", "sessionId": session_id})
                else:
                    await self._socket.send({"type": "session", "session": session_json(snapshot)})
