"""Write requests to the audit log, and count answers and sent bytes."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .audit import AuditLog
from .connections import ANSWERED
from .traffic import TrafficCounters
from .websocket import SET_TRAFFIC

READ_METHODS = ("GET", "HEAD")
REFUSAL_STATUSES = (401, 403, 429)
FIRST_ERROR_STATUS = 400  # from here on, answers to requests without a credential are logged
SWITCHING_PROTOCOLS = 101  # the status logged for an accepted socket
FIRST_OWN_CLOSE_CODE = 4000  # from here on, close codes are sent by this server


class AuditMiddleware:
    """ASGI layer around the gate, so that it sees refusals too.

    It logs changes, refusals, and sockets when they open or the server closes them.
    """

    def __init__(self, app: ASGIApp, audit_log: AuditLog, traffic: TrafficCounters) -> None:
        self._app = app
        self._audit_log = audit_log
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            match message["type"]:
                case "websocket.send" if "frame" not in message:
                    self._traffic.bytes_out += _size(message["text"])
                case "http.response.body" | "websocket.http.response.body":
                    self._traffic.bytes_out += len(message.get("body", b""))
                case _:
                    self._record(scope, message)
            await send(message)

        self._audit_log.write_summary()
        if scope["type"] == "websocket":
            scope["extensions"][SET_TRAFFIC](self._traffic)
        await self._app(scope, receive, sending)

    def record_refusal(self, path: str, status: int, peer: str) -> None:
        """Record an answer of the HTTP protocol to a request that never reached the application."""
        self._traffic.answers[status] += 1
        self._audit_log.write(None, "", path, status, peer)

    def _record(self, scope: Scope, message: Message) -> None:
        """Count an answer, and log it if it must be in the audit log."""
        match message:
            case {"type": "http.response.start" | "websocket.http.response.start", "status": status}:
                status = scope["extensions"].get(ANSWERED, status)
                self._traffic.answers[status] += 1
                if scope.get("method", "GET") not in READ_METHODS or _is_refusal(scope, status):
                    self._write(scope, status)
            case {"type": "websocket.accept"}:
                self._write(scope, SWITCHING_PROTOCOLS)
            case {"type": "websocket.close", "code": int(code)} if code >= FIRST_OWN_CLOSE_CODE:
                self._write(scope, code)

    def _write(self, scope: Scope, status: int) -> None:
        """Write an audit line for a request."""
        method = "WS" if scope["type"] == "websocket" else scope["method"]
        self._audit_log.write(scope.get("principal"), method, scope["path"], status, peer_of(scope))


def _is_refusal(scope: Scope, status: int) -> bool:
    """Return whether a refusal must be logged, even of a read request."""
    return status in REFUSAL_STATUSES or (status >= FIRST_ERROR_STATUS and "principal" not in scope)


def _size(text: str) -> int:
    """Return the length of a text as UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def peer_of(scope: Scope) -> str:
    """Return the address of the client, or an empty string."""
    client = scope.get("client")
    return str(client[0]) if client else ""
