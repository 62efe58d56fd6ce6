"""Letting a socket in: accepted, its second secret heard, closed again when its token dies."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState
from uvicorn.protocols.utils import ClientDisconnected

from ...domain.errors import BullpenError, Forbidden, Invalid, NotFound, Unauthorized, Unavailable
from ...domain.failures import explain
from ...sessions.presence import ViewerPresence
from ...sessions.session import Session
from ...wire.json import decode, encode
from ..auth import Credentials
from ..connections import authenticate
from ..errors import TRY_AGAIN_LATER
from ..scopes import Principal, Scope
from ..websocket import HEAR, PUSH, Frame, Listener

SECRET_SECONDS = 5.0
GOODBYE_SECONDS = 1.0
UNAUTHORIZED, FORBIDDEN, GONE = 4401, 4403, 4404
REFUSED = 1008  # the standard's word for a request that makes no sense here


class AdmittedSocket:
    """A socket that has been let in; text frames are JSON objects with a `type`."""

    def __init__(self, websocket: WebSocket, principal: Principal) -> None:
        self._websocket = websocket
        # Sends a finished frame at once, without waking anybody; False when it has to wait its turn.
        self.push: Callable[[Frame], bool] = websocket.scope["extensions"][PUSH]
        self._hear: Callable[[Listener | None], None] = websocket.scope["extensions"][HEAR]
        self.principal = principal

    async def send(self, message: dict[str, Any]) -> None:
        await self.send_text(encode(message))

    async def send_text(self, encoded: bytes) -> None:
        """Sends what is JSON already."""
        await self._send({"type": "websocket.send", "text": encoded.decode()})

    async def send_frame(self, frame: Frame) -> None:
        """Sends what is a frame already, for one or for many: at once if it can be."""
        if not self.push(frame):
            await self._send({"type": "websocket.send", "frame": frame})

    async def _send(self, message: dict[str, Any]) -> None:
        """Send a message, or raise WebSocketDisconnect; a send of another task may have failed before."""
        if self._websocket.application_state is WebSocketState.DISCONNECTED:
            raise WebSocketDisconnect(1006)
        await self._websocket.send(message)

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Every message of the client until it leaves; nonsense is answered, not fatal."""
        while True:
            try:
                yield _received(await self._websocket.receive())
            except Invalid as error:
                await self.send_error(error)
            except WebSocketDisconnect:
                return

    @contextmanager
    def hearing(self, listener: Listener) -> Iterator[None]:
        """Offers it each short text as it comes; what it does not take is in `messages`."""
        self._hear(listener)
        try:
            yield
        finally:
            self._hear(None)

    async def send_error(self, error: BullpenError, message: dict[str, Any] | None = None) -> None:
        about = {"id": message["id"]} if message and "id" in message else {}
        await self.send({"type": "error", **about, "error": error.code, "message": str(error)})

    async def close(self, code: int, reason: str) -> None:
        """Close the socket; do nothing if the server or the client has closed it already."""
        if self._websocket.application_state is not WebSocketState.DISCONNECTED:
            with suppress(WebSocketDisconnect):
                await self._websocket.close(code, reason)


@asynccontextmanager
async def admitted(websocket: WebSocket, credentials: Credentials) -> AsyncIterator[AdmittedSocket]:
    """Accepts a socket the gate let through and keeps it while the block runs."""
    await websocket.accept()
    socket = AdmittedSocket(websocket, websocket.scope["principal"])
    this = asyncio.current_task()
    assert this is not None
    dead = ""
    entered = False

    def die(reason: str) -> None:
        nonlocal dead
        if not dead:
            dead = reason
            this.cancel()

    try:
        await _hear_secret(websocket)
        with credentials.socket_of(socket.principal, websocket.scope["route"].path, die):
            entered = True
            yield socket
    except asyncio.CancelledError:
        if not dead:
            raise
        this.uncancel()
        with suppress(TimeoutError):  # who does not read does not hear it either
            async with asyncio.timeout(GOODBYE_SECONDS):
                await socket.close(UNAUTHORIZED, dead)
    except Unauthorized as error:
        await socket.close(UNAUTHORIZED, str(error))
    except Forbidden as error:
        await socket.close(FORBIDDEN, str(error))
    except NotFound as error:
        await socket.close(GONE, str(error))
    except WebSocketDisconnect:
        pass
    except Exception as error:
        explained = explain(error)
        if explained is None:
            raise
        with suppress(WebSocketDisconnect):
            await socket.send_error(explained)
        await socket.close(TRY_AGAIN_LATER if isinstance(explained, Unavailable) else REFUSED, str(explained))
    if not entered:  # closed before the block could run; uvicorn takes this as the end of the socket
        raise ClientDisconnected


def seen(presence: ViewerPresence, session: Session, principal: Principal) -> AbstractContextManager[None]:
    """A person is at a session; guests and delegates do not count: one who leaves ends nothing."""
    return presence.viewing(session) if _is_person(principal) else nullcontext()


def onlooker(
    presence: ViewerPresence, session: Session, principal: Principal
) -> AbstractContextManager[Callable[[bool], None]]:
    """Takes the word of a person that they look; a guest who does keeps no notification from the others."""
    if _is_person(principal):
        return presence.onlookers.one(session.id)
    return nullcontext(lambda visible: None)


def _is_person(principal: Principal) -> bool:
    return principal.session_id is None and principal.scope >= Scope.VIEW


@asynccontextmanager
async def loops() -> AsyncIterator[asyncio.TaskGroup]:
    """The loops of one socket, which end together; that the client has left is no error."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except* WebSocketDisconnect:
        pass
    except* BullpenError as refused:
        raise refused.exceptions[0] from None


async def _hear_secret(websocket: WebSocket) -> None:
    """A cookie opens a socket only together with the secret of its origin, as the first message."""
    device = websocket.scope.get("device")
    if device is None:
        return
    try:
        async with asyncio.timeout(SECRET_SECONDS):
            message = _received(await websocket.receive())
    except (TimeoutError, Invalid):
        raise Unauthorized("the first message must be the secret") from None
    if message.get("type") != "auth" or not device.has_secret(str(message.get("secret", ""))):
        raise Unauthorized("the first message must be the secret")
    authenticate(websocket.scope)


def _received(event: Any) -> dict[str, Any]:
    if event["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(event.get("code", 1005))
    text = event.get("text")
    if text is None:
        raise Invalid("messages to the server are JSON text")
    return _read(text)


def _read(text: str) -> dict[str, Any]:
    message = decode(text)
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise Invalid("a message is a JSON object with a type")
    return message
