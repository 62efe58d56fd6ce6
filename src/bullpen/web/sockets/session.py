"""WS /ws/session/{sid}: the event stream of a session, from any seq on, and orders to it."""

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
from .admission import AdmittedSocket, admitted, loops, onlooker, seen
from .orders import SessionOrders

router = APIRouter()


_frames: WeakKeyDictionary[EventBatch, Frame] = WeakKeyDictionary()


@router.websocket("/ws/session/{session_id}", dependencies=[Depends(allow_delegate(Scope.VIEW))])
async def session_socket(websocket: WebSocket, session_id: str) -> None:
    context = context_of(websocket)
    async with admitted(websocket, context.credentials) as socket:
        session = await context.sessions.get(session_id)
        with (
            seen(context.presence, session, socket.principal),
            onlooker(context.presence, session, socket.principal) as look,
        ):
            await SessionSocket(session.log, socket, SessionOrders(session, socket.principal), look).run()


class SessionSocket:
    """One follower of a log: subscribes, and subscribes again, as often as it likes; its orders go by."""

    def __init__(
        self, log: SessionLog, socket: AdmittedSocket, orders: SessionOrders, look: Callable[[bool], None]
    ) -> None:
        self._log = log
        self._socket = socket
        self._orders = orders
        self._look = look
        self._following: asyncio.Task[None] | None = None

    async def run(self) -> None:
        async with loops() as tasks:
            beating = tasks.create_task(self._beat())
            async for message in self._socket.messages():
                try:
                    await self._take(message, tasks)
                except BullpenError as error:
                    await self._socket.send_error(error, message)
            beating.cancel()
            self._unsubscribe()

    async def _take(self, message: dict[str, Any], tasks: asyncio.TaskGroup) -> None:
        match message["type"]:
            case "subscribe":
                after = _after(message, self._log.head)
                self._unsubscribe()
                self._following = tasks.create_task(self._follow(after, message.get("notices") is True))
            case "looking":
                self._look(_visible(message))
            case _:
                done = await self._orders.take(message)
                await self._socket.send({"type": "ack", "id": message.get("id"), **done})

    def _unsubscribe(self) -> None:
        if self._following is not None:
            self._following.cancel()

    async def _follow(self, after: int | None, notices: bool) -> None:
        """A newcomer, or one too far behind, gets the sum first; then every event, in order."""
        if after is None or self._log.behind(after):
            snapshot = self._log.snapshot
            after = snapshot.last_seq
            await self._socket.send({"type": "snapshot", "seq": after, "session": session_json(snapshot)})
        async for batch in paced(self._log.follow(after), None if notices else self._push):
            # Before the events: who is cut off in between and comes back gets them again, never too few.
            for wire in batch.encoded if notices else ():
                if notice := queue_notice(self._log.id, wire):
                    await self._socket.send(notice)
            await self._socket.send_frame(_frame(batch))
        raise NotFound(f"no session {self._log.id}")  # any more: it was purged

    def _push(self, batch: EventBatch) -> bool:
        return self._socket.push(_frame(batch))

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(intervals().heartbeat)
            await self._socket.send({"type": "heartbeat", "head": self._log.head})


def _frame(batch: EventBatch) -> Frame:
    """What is sent of a batch, made once for all who share it."""
    frame = _frames.get(batch)
    if frame is None:
        events = b",".join(batch.encoded)
        frame = text_frame(b'{"type":"events","events":[%b],"head":%d}' % (events, batch.head))
        _frames[batch] = frame
    return frame


def _after(message: dict[str, Any], head: int) -> int | None:
    """The last seq the client has; None when it has nothing, or a number this log never gave out."""
    match message.get("after"):
        case None:
            return None
        case int(after) if after >= 0:
            return after if after <= head else None
        case _:
            raise Invalid("after must be a seq: a whole number from 0 on")


def _visible(message: dict[str, Any]) -> bool:
    match message.get("visible"):
        case bool(visible):
            return visible
        case _:
            raise Invalid("visible must be true or false")
