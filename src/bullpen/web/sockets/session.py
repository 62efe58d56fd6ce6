"""`/ws/session/{sid}`: stream the events of a session from any seq on, and take commands for it."""

import asyncio
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Depends, WebSocket

from ...domain.errors import BullpenError, Invalid, NotFound
from ...intervals import intervals
from ...log.follow import EventBatch, paced
from ...log.log import SessionLog
from ...wire.browser import session_json
from ...wire.queue_notices import queue_notice
from ..context import context_of
from ..delegates import allow_delegate
from ..scopes import Scope
from ..websocket import Frame, text_frame
from .admission import AdmittedSocket, admit, count_viewer, socket_tasks, track_attention
from .orders import SessionOrders

router = APIRouter()


_frames: WeakKeyDictionary[EventBatch, Frame] = WeakKeyDictionary()


@router.websocket("/ws/session/{session_id}", dependencies=[Depends(allow_delegate(Scope.VIEW))])
async def session_socket(websocket: WebSocket, session_id: str) -> None:
    """Accept a client that follows a session; while it is connected, it counts as a viewer."""
    context = context_of(websocket)
    async with admit(websocket, context.credentials) as socket:
        session = await context.sessions.get(session_id)
        with (
            count_viewer(context.presence, session, socket.principal),
            track_attention(context.presence, session, socket.principal) as report_attention,
        ):
            await SessionSocket(
                session.log, socket, SessionOrders(session, socket.principal), report_attention
            ).run()


class SessionSocket:
    """A socket that follows the log of one session. It may subscribe again, and send commands."""

    def __init__(
        self,
        log: SessionLog,
        socket: AdmittedSocket,
        orders: SessionOrders,
        report_attention: Callable[[bool], None],
    ) -> None:
        self._log = log
        self._socket = socket
        self._orders = orders
        self._report_attention = report_attention
        self._following: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Handle messages one by one until the client disconnects; answer a failed one with an error."""
        async with socket_tasks() as tasks:
            heartbeat = tasks.create_task(self._send_heartbeats())
            async for message in self._socket.messages():
                try:
                    await self._handle(message, tasks)
                except BullpenError as error:
                    await self._socket.send_error(error, message)
            heartbeat.cancel()
            self._unsubscribe()

    async def _handle(self, message: dict[str, Any], tasks: asyncio.TaskGroup) -> None:
        """Subscribe, note whether the session is visible, or execute a command and acknowledge it."""
        match message["type"]:
            case "subscribe":
                after = _after(message, self._log.head)
                self._unsubscribe()
                self._following = tasks.create_task(self._follow(after, message.get("notices") is True))
            case "looking":
                self._report_attention(_visible(message))
            case _:
                done = await self._orders.take(message)
                await self._socket.send({"type": "ack", "id": message.get("id"), **done})

    def _unsubscribe(self) -> None:
        """Stop sending events, if the client has subscribed."""
        if self._following is not None:
            self._following.cancel()

    async def _follow(self, after: int | None, notices: bool) -> None:
        """Send a snapshot to a client that is new or too far behind, then every event in order.

        With `notices`, send queue notices too. Raise NotFound when the session is purged.
        """
        if after is None or self._log.is_far_behind(after):
            snapshot = self._log.snapshot
            after = snapshot.last_seq
            await self._socket.send({"type": "snapshot", "seq": after, "session": session_json(snapshot)})
        async for batch in paced(self._log.follow(after), None if notices else self._push):
            # Notices go before their events: a client that reconnects in between may get them twice.
            for wire in batch.encoded if notices else ():
                if notice := queue_notice(self._log.id, wire):
                    await self._socket.send(notice)
            await self._socket.send_frame(_frame(batch))
        raise NotFound(f"no session {self._log.id}")  # it was purged

    def _push(self, batch: EventBatch) -> bool:
        """Send a batch without a task switch; return False if it must wait."""
        return self._socket.push(_frame(batch))

    async def _send_heartbeats(self) -> None:
        """Send heartbeats with the newest seq, the first at once, so that the client notices a loss.

        The first one tells a client that has every event already that its connection works.
        """
        while True:
            await self._socket.send({"type": "heartbeat", "head": self._log.head})
            await asyncio.sleep(intervals().heartbeat)


def _frame(batch: EventBatch) -> Frame:
    """Return the frame of a batch; it is made once for all sockets."""
    frame = _frames.get(batch)
    if frame is None:
        events = b",".join(batch.encoded)
        frame = text_frame(b'{"type":"events","events":[%b],"head":%d}' % (events, batch.head))
        _frames[batch] = frame
    return frame


def _after(message: dict[str, Any], head: int) -> int | None:
    """Return the last seq that the client has; None if it has none, or one that is not in this log.

    Raise Invalid if it is not a whole number.
    """
    match message.get("after"):
        case None:
            return None
        case int(after) if after >= 0:
            return after if after <= head else None
        case _:
            raise Invalid("after must be a seq: a whole number from 0 on")


def _visible(message: dict[str, Any]) -> bool:
    """Return the field `visible`, or raise Invalid."""
    match message.get("visible"):
        case bool(visible):
            return visible
        case _:
            raise Invalid("visible must be true or false")
