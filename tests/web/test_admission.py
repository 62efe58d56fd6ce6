"""What a socket that was let in does when its client leaves."""

import pytest
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from bullpen.web.scopes import Principal, Scope
from bullpen.web.sockets.admission import AdmittedSocket
from bullpen.web.websocket import HEAR, PUSH, Frame


async def receive() -> Message:
    return {"type": "websocket.connect"}


async def send(message: Message) -> None:
    if message["type"] == "websocket.send":
        raise ConnectionResetError


def refuse(frame: Frame) -> bool:
    return False


async def test_every_task_that_sends_learns_that_the_client_has_left() -> None:
    extensions = {PUSH: refuse, HEAR: lambda listener: None}
    websocket = WebSocket({"type": "websocket", "extensions": extensions}, receive, send)
    await websocket.accept()
    socket = AdmittedSocket(websocket, Principal("id", "me", Scope.ADMIN))
    for _ in range(2):  # the second one is of a task that has not noticed it
        with pytest.raises(WebSocketDisconnect):
            await socket.send({"type": "heartbeat"})
        with pytest.raises(WebSocketDisconnect):
            await socket.send_frame((b"frame",))
