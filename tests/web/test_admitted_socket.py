"""An admitted socket reports to every sending task that its client has left."""

import pytest
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from bullpen.web.scopes import Principal, Scope
from bullpen.web.sockets.admission import AdmittedSocket
from bullpen.web.websocket import PUSH, SET_LISTENER, Frame


async def receive() -> Message:
    return {"type": "websocket.connect"}


async def send(message: Message) -> None:
    if message["type"] == "websocket.send":
        raise ConnectionResetError


def refuse(frame: Frame) -> bool:
    return False


async def test_every_task_that_sends_gets_a_disconnect_after_the_client_has_left() -> None:
    extensions = {PUSH: refuse, SET_LISTENER: lambda listener: None}
    websocket = WebSocket({"type": "websocket", "extensions": extensions}, receive, send)
    await websocket.accept()
    socket = AdmittedSocket(websocket, Principal("id", "me", Scope.ADMIN))
    for _ in range(2):  # the second send is from a task that does not know of the first error
        with pytest.raises(WebSocketDisconnect):
            await socket.send({"type": "heartbeat"})
        with pytest.raises(WebSocketDisconnect):
            await socket.send_frame((b"frame",))
