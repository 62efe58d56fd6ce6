"""What every request leaves behind: a line in the audit log and what it adds to the counts."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .audit import AuditLog
from .connections import ANSWERED
from .traffic import TrafficCounters
from .websocket import COUNT

READING = ("GET", "HEAD")
REFUSED = (401, 403, 429)
FAILED = 400  # answers from here on; of requests without a credential they are all told
SWITCHED = 101  # a socket that was let in, as HTTP says it
OURS = 4000  # closing codes from here on say why we closed


class AuditMiddleware:
    """Wraps the gate, so that it sees refusals too. A socket leaves a line when it opens or we close it."""

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
                    self._note(scope, message)
            await send(message)

        self._audit_log.summarise()
        if scope["type"] == "websocket":
            scope["extensions"][COUNT](self._traffic)
        await self._app(scope, receive, sending)

    def refused(self, path: str, status: int, peer: str) -> None:
        """Note an answer of the HTTP protocol to a request that never reached the application."""
        self._traffic.answers[status] += 1
        self._audit_log.write(None, "", path, status, peer)

    def _note(self, scope: Scope, message: Message) -> None:
        match message:
            case {"type": "http.response.start" | "websocket.http.response.start", "status": status}:
                status = scope["extensions"].get(ANSWERED, status)
                self._traffic.answers[status] += 1
                if scope.get("method", "GET") not in READING or _is_refusal(scope, status):
                    self._write(scope, status)
            case {"type": "websocket.accept"}:
                self._write(scope, SWITCHED)
            case {"type": "websocket.close", "code": int(code)} if code >= OURS:
                self._write(scope, code)

    def _write(self, scope: Scope, status: int) -> None:
        method = "WS" if scope["type"] == "websocket" else scope["method"]
        self._audit_log.write(scope.get("principal"), method, scope["path"], status, peer_of(scope))


def _is_refusal(scope: Scope, status: int) -> bool:
    return status in REFUSED or (status >= FAILED and "principal" not in scope)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def peer_of(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""
