"""Accept WebSockets: check the second secret of a device, and close a socket when its token is revoked."""

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
from ..websocket import PUSH, SET_LISTENER, Frame, Listener

SECRET_TIMEOUT_SECONDS = 5.0
CLOSE_TIMEOUT_SECONDS = 1.0
UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 4401, 4403, 4404
POLICY_VIOLATION = 1008  # close code of RFC 6455


class AdmittedSocket:
    """A WebSocket of an authenticated client. Text messages are JSON objects with a `type`."""

    def __init__(self, websocket: WebSocket, principal: Principal) -> None:
        self._websocket = websocket
        # Send a prepared frame without a task switch; return False if it must wait.
        self.push: Callable[[Frame], bool] = websocket.scope["extensions"][PUSH]
        self._set_listener: Callable[[Listener | None], None] = websocket.scope["extensions"][SET_LISTENER]
        self.principal = principal

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message as JSON text."""
        await self.send_text(encode(message))

    async def send_text(self, encoded: bytes) -> None:
        """Send a message that is encoded as JSON already."""
        await self._send({"type": "websocket.send", "text": encoded.decode()})

    async def send_frame(self, frame: Frame) -> None:
        """Send a prepared frame, at once if possible. Many sockets may share one frame."""
        if not self.push(frame):
            await self._send({"type": "websocket.send", "frame": frame})

    async def _send(self, message: dict[str, Any]) -> None:
        """Send a message, or raise WebSocketDisconnect; a send of another task may have failed before."""
        if self._websocket.application_state is WebSocketState.DISCONNECTED:
            raise WebSocketDisconnect(1006)
        await self._websocket.send(message)

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the messages of the client until it disconnects. Answer invalid ones with an error."""
        while True:
            try:
                yield _parse_event(await self._websocket.receive())
            except Invalid as error:
                await self.send_error(error)
            except WebSocketDisconnect:
                return

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """Give short texts to a listener while the block runs; those it does not handle are in `messages`."""
        self._set_listener(listener)
        try:
            yield
        finally:
            self._set_listener(None)

    async def send_error(self, error: BullpenError, message: dict[str, Any] | None = None) -> None:
        """Send an error, with the id of the message that it is about."""
        about = {"id": message["id"]} if message and "id" in message else {}
        await self.send({"type": "error", **about, "error": error.code, "message": str(error)})

    async def close(self, code: int, reason: str) -> None:
        """Close the socket; do nothing if the server or the client has closed it already."""
        if self._websocket.application_state is not WebSocketState.DISCONNECTED:
            with suppress(WebSocketDisconnect):
                await self._websocket.close(code, reason)


@asynccontextmanager
async def admit(websocket: WebSocket, credentials: Credentials) -> AsyncIterator[AdmittedSocket]:
    """Accept a socket, and close it with the right code when the block ends or its token is revoked.

    The body is cancelled when the token is revoked.
    """
    await websocket.accept()
    socket = AdmittedSocket(websocket, websocket.scope["principal"])
    task = asyncio.current_task()
    assert task is not None
    close_reason = ""
    entered = False

    def request_close(reason: str) -> None:
        nonlocal close_reason
        if not close_reason:
            close_reason = reason
            task.cancel()

    try:
        await _check_secret(websocket)
        with credentials.track_socket(socket.principal, websocket.scope["route"].path, request_close):
            entered = True
            yield socket
    except asyncio.CancelledError:
        if not close_reason:
            raise
        task.uncancel()
        with suppress(TimeoutError):  # the client may not read any more
            async with asyncio.timeout(CLOSE_TIMEOUT_SECONDS):
                await socket.close(UNAUTHORIZED, close_reason)
    except Unauthorized as error:
        await socket.close(UNAUTHORIZED, str(error))
    except Forbidden as error:
        await socket.close(FORBIDDEN, str(error))
    except NotFound as error:
        await socket.close(NOT_FOUND, str(error))
    except WebSocketDisconnect:
        pass
    except Exception as error:
        explained = explain(error)
        if explained is None:
            raise
        with suppress(WebSocketDisconnect):
            await socket.send_error(explained)
        await socket.close(
            TRY_AGAIN_LATER if isinstance(explained, Unavailable) else POLICY_VIOLATION, str(explained)
        )
    if not entered:  # closed before the block could run; uvicorn takes this as the end of the socket
        raise ClientDisconnected


def count_viewer(
    presence: ViewerPresence, session: Session, principal: Principal
) -> AbstractContextManager[None]:
    """Count the caller as a viewer of the session, unless it is a share link or a delegate."""
    return presence.viewing(session) if _is_user(principal) else nullcontext()


def track_attention(
    presence: ViewerPresence, session: Session, principal: Principal
) -> AbstractContextManager[Callable[[bool], None]]:
    """Yield a function with which a client reports whether its user sees the session.

    Reports of share links and delegates are ignored.
    """
    if _is_user(principal):
        return presence.attentive.track(session.id)
    return nullcontext(lambda visible: None)


def _is_user(principal: Principal) -> bool:
    """Return whether the principal is a user with access to all sessions."""
    return principal.session_id is None and principal.scope >= Scope.VIEW


@asynccontextmanager
async def socket_tasks() -> AsyncIterator[asyncio.TaskGroup]:
    """Yield a task group for one socket. Its tasks end together; a disconnected client is no error."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except* WebSocketDisconnect:
        pass
    except* BullpenError as refused:
        raise refused.exceptions[0] from None


async def _check_secret(websocket: WebSocket) -> None:
    """Require the second secret as the first message of a socket that a cookie has opened.

    Raise Unauthorized without it.
    """
    device = websocket.scope.get("device")
    if device is None:
        return
    try:
        async with asyncio.timeout(SECRET_TIMEOUT_SECONDS):
            message = _parse_event(await websocket.receive())
    except (TimeoutError, Invalid):
        raise Unauthorized("the first message must be the secret") from None
    if message.get("type") != "auth" or not device.has_secret(str(message.get("secret", ""))):
        raise Unauthorized("the first message must be the secret")
    authenticate(websocket.scope)


def _parse_event(event: Any) -> dict[str, Any]:
    """Return the message of a received event, or raise WebSocketDisconnect or Invalid."""
    if event["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(event.get("code", 1005))
    text = event.get("text")
    if text is None:
        raise Invalid("messages to the server are JSON text")
    return _parse_text(text)


def _parse_text(text: str) -> dict[str, Any]:
    """Return the message in a text, or raise Invalid."""
    message = decode(text)
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise Invalid("a message is a JSON object with a type")
    return message
