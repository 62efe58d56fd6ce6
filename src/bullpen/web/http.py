"""uvicorn's HTTP protocol with limits on what a request may send before it is complete.

It does not pipeline: a request that begins before the answer to the one before it is dropped, and the
connection is closed after that answer. The host in an absolute-form target (`GET http://host/path`) becomes
one more Host header, so that the gate refuses a foreign one.
"""

from functools import partial
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState
from websockets.http11 import MAX_LINE_LENGTH

from .connections import (
    ANSWERED,
    AUTHENTICATED,
    MAX_HEADER_BYTES,
    MAX_HEADER_FIELDS,
    MAX_TARGET_BYTES,
    ClientConnection,
    OnRefusal,
)
from .errors import STATUS, error_body
from .gate import HEADERS
from .websocket import WebSocketProtocol

PIECE_BYTES = 16 << 10  # bytes given to the parser at once; a limit is checked before each
LINE_OVERHEAD = len(b"GET  HTTP/1.1\r\n")  # bytes of the longest line of a request besides its text
LINGER_SECONDS = 2.0  # between an answer that refuses a request and the end of its connection
# Bytes of a refused request that are read, so that its client can read the answer.
MAX_DISCARDED_BYTES = 1 << 20
UNREAD_SECONDS = 60.0  # an unauthenticated client has to read the last answer on its connection

MESSAGES = {
    "invalid": "this is not a valid HTTP request",
    "headers_too_large": f"headers may have {MAX_HEADER_BYTES} bytes and {MAX_HEADER_FIELDS} fields, "
    f"a path with its query {MAX_TARGET_BYTES} bytes",
    "request_timeout": "the request did not arrive in time",
}


class HttpProtocol(HttpToolsProtocol):
    """Answers 431 to headers that are too large and 408 to a request that is not complete in time.

    The headers of every request have a deadline. The body has one until the gate has found a valid
    credential.
    """

    url = b""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        connection: ClientConnection,
        on_refusal: OnRefusal,
    ) -> None:
        super().__init__(config, server_state, app_state)
        self.ws_protocol_class = partial(  # type: ignore[assignment]
            WebSocketProtocol, connection=connection, on_refusal=on_refusal
        )
        self._connection = connection
        self._on_refusal = on_refusal
        self._error_code = "invalid"
        self._unparsed = 0  # bytes since the parser last made progress: a whole header or a part of the body
        self._fields = 0  # of the request that is arriving, with its trailers
        self._discarded = 0
        self._in_body = self._refused = self._upgraded = False

    def connection_made(self, transport: Any) -> None:
        """Let the connection's deadlines abort or expire this protocol."""
        super().connection_made(transport)
        self._connection.abort = self._abort
        self._connection.expire = self._expire

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
        self._connection.close()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Give received bytes to the parser in pieces, checking the limits before each."""
        for start in range(0, len(data), PIECE_BYTES):
            if self._refused:
                self._discard(len(data) - start)
                return
            if self._upgraded or self.transport.is_closing():
                return
            self._parse(data[start : start + PIECE_BYTES])

    def _parse(self, piece: bytes) -> None:
        """Give a piece of the request to the parser, with a deadline for the headers.

        Headers that are too large are refused.
        """
        self._unparsed += len(piece)
        if self._unparsed > MAX_HEADER_BYTES:
            self._refuse("headers_too_large")
            return
        if not self._in_body:
            self._connection.start_deadline()
        super().data_received(piece)

    # -- what the parser finds ----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Refuse a pipelined request."""
        if self.cycle is not None and not self.cycle.response_complete:
            raise ValueError("requests are not pipelined")  # the parser stops here
        self._fields = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header, and raise ValueError at too many; ignore trailers after the body."""
        self._fields += 1
        if self._fields > MAX_HEADER_FIELDS:
            self._error_code = "headers_too_large"
            raise ValueError("too many header fields")  # before the parser calls this for thousands more
        if not self._in_body:  # a trailer is dropped: the application would take it for a header
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Check the target of the request, then let uvicorn start the request; its body comes next.

        Raise ValueError for a target that is too long or not ASCII.
        """
        self._unparsed = 0
        if len(self.url) > MAX_TARGET_BYTES:
            self._error_code = "headers_too_large"
            raise ValueError("the target of the request is too long")
        if not self.url.isascii():
            raise ValueError("the target of a request is ASCII")
        if not self.url.startswith(b"/"):
            self.headers.append((b"host", self.url))
        self.scope["extensions"] = {AUTHENTICATED: self._authenticate}  # type: ignore[dict-item]
        super().on_headers_complete()
        self._in_body = True

    def on_chunk_header(self) -> None:
        """Note that the parser made progress."""
        self._unparsed = 0

    def on_body(self, body: bytes) -> None:
        """Note that the parser made progress, and pass on a part of the body."""
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop the deadline of the complete request."""
        self._unparsed = 0
        self._in_body = False
        self._connection.stop_deadline()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Switch to the WebSocket protocol, unless a header line is too long for it."""
        longest = max(len(self.url), *(len(name) + len(value) for name, value in self.headers))
        if longest + LINE_OVERHEAD > MAX_LINE_LENGTH:
            self._refuse("headers_too_large")
            return
        self._upgraded = True
        self._connection.start_deadline()  # until the WebSocket shows its credential
        super().handle_websocket_upgrade()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection; drop one without a credential if its client does not read."""
        super().timeout_keep_alive_handler()
        if not self._connection.authenticated:
            self._connection.abort_after(UNREAD_SECONDS)

    def _authenticate(self) -> None:
        """Mark the connection as authenticated; end the deadline of a body that is arriving."""
        self._connection.authenticate()
        if self._in_body:
            self._connection.stop_deadline()

    # -- refusing -----------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """Answer a request that the parser refused."""
        self._refuse(self._error_code)

    def _expire(self) -> None:
        """Answer 408 to an incomplete request, or close an idle connection: its deadline has passed."""
        if self._in_body or self._unparsed:
            self._refuse("request_timeout")
        else:  # an idle connection
            self._abort()

    def _abort(self) -> None:
        """Close the connection at once. The application must not write to it any more."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.abort()

    def _refuse(self, code: str) -> None:
        """Answer a request that the application does not see, or not completely, and close the connection."""
        self._refused = True
        self._connection.stop_deadline()
        if self.cycle is None or self.cycle.response_complete:
            if self._in_body:  # answered already; only its body was still arriving
                self._abort()
                return
            path = self.url.decode("latin-1").partition("?")[0]
            self._on_refusal(path, STATUS[code], self.client[0] if self.client else "")
        elif self._in_body and not self.cycle.response_started:
            self.scope["extensions"][ANSWERED] = STATUS[code]  # type: ignore[assignment]
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        else:  # an answer is on its way
            self.cycle.keep_alive = False
            return
        self._answer(STATUS[code], error_body(code, MESSAGES[code]))

    def _answer(self, status: int, body: bytes) -> None:
        """Write an answer; wait a moment for the client to read it, as closing at once could discard it."""
        headers = HEADERS | {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Connection": "close",
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.transport.write(STATUS_LINE[status] + lines.encode() + b"\r\n" + body)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._connection.abort_after(LINGER_SECONDS)

    def _discard(self, size: int) -> None:
        """Count bytes of a refused request, and stop reading when they are too many."""
        self._discarded += size
        if self._discarded > MAX_DISCARDED_BYTES and not self.transport.is_closing():
            self.flow.pause_reading()
