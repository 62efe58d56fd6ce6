"""A JSON-RPC parser without I/O: bytes of a stream become lines, and lines become messages.

Every message has the offsets of its line, so that the reader can record how far the stream is consumed. An
invalid line is a value as well: no input raises an exception or is lost.
"""

from collections.abc import Collection
from typing import Any

from msgspec import Struct

from ..domain.errors import Invalid
from .json import decode, encode

MAX_LINE_BYTES = 64 << 20
MAX_INVALID_LINE_BYTES = 8 << 10  # the part of an invalid line that is kept

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603

_BLANK = b" \t\r\n\v\f"


class Line(Struct, frozen=True, kw_only=True):
    """One line of the stream: the offsets of its first byte and of the first byte after it."""

    start: int
    end: int


class Request(Line, frozen=True, kw_only=True):
    """A JSON-RPC request that needs an answer. `id` was chosen by the sender and may have any type."""

    id: Any
    method: str
    params: Any = None


class Notification(Line, frozen=True, kw_only=True):
    """A JSON-RPC message that needs no answer."""

    method: str
    params: Any = None


class Response(Line, frozen=True, kw_only=True):
    """A successful answer to a JSON-RPC request."""

    id: Any
    result: Any = None


class ErrorResponse(Line, frozen=True, kw_only=True):
    """An error answer to a JSON-RPC request."""

    id: Any
    code: int
    message: str
    data: Any = None


class InvalidLine(Line, frozen=True, kw_only=True):
    """A line that is not a JSON-RPC message: the beginning of its text and the reason."""

    text: str
    why: str


class LineTooLong(Line, frozen=True, kw_only=True):
    """A line exceeded the limit. The rest of it is skipped."""


class LongLineEnd(Line, frozen=True, kw_only=True):
    """The end of a skipped line, and its size in bytes."""

    size: int


class JsonRpcPeer:
    """Parses JSON-RPC messages in a stream from `offset` on.

    `skipping` is the offset of a line that was being skipped there because it is too long.
    """

    def __init__(self, offset: int = 0, skipping: int | None = None, limit: int = MAX_LINE_BYTES) -> None:
        self.offset = offset
        self._limit = limit
        self._start = offset if skipping is None else skipping
        self._skipping = skipping is not None
        self._half = bytearray()

    @property
    def resume_offset(self) -> int:
        """The offset from which a later parser must read: the start of an incomplete line.

        A line that is being skipped need not be read again.
        """
        return self.offset if self._skipping else self._start

    def feed(self, data: bytes) -> list[Line]:
        """Return the messages whose lines end in these bytes. The stream may be cut anywhere."""
        found: list[Line] = []
        view = memoryview(data)
        position = 0
        while (newline := data.find(b"\n", position)) >= 0:
            self._take(view[position:newline], found)
            self._end_line(1, found)
            position = newline + 1
        self._take(view[position:], found)
        return found

    def finish(self) -> list[Line]:
        """Return the last message if the stream ended without a newline."""
        found: list[Line] = []
        if self.offset > self._start:
            self._end_line(0, found)
        return found

    def _take(self, piece: memoryview, found: list[Line]) -> None:
        """Append a piece to the current line, or skip it if the line is too long."""
        self.offset += len(piece)
        if self._skipping:
            return
        if len(self._half) + len(piece) > self._limit:
            self._skipping = True
            self._half = bytearray()
            # Not the offset: the same stream must give the same values, wherever it is cut.
            found.append(LineTooLong(start=self._start, end=self._start + self._limit))
            return
        self._half += piece

    def _end_line(self, newline: int, found: list[Line]) -> None:
        """End the current line and append its message to `found`."""
        self.offset += newline
        start, self._start = self._start, self.offset
        if self._skipping:
            self._skipping = False
            found.append(LongLineEnd(start=start, end=self.offset, size=self.offset - start))
            return
        line, self._half = bytes(self._half), bytearray()
        if line.strip(_BLANK):
            found.append(read_line(line, start, self.offset))


def read_line(line: bytes, start: int, end: int) -> Line:
    """Return the JSON-RPC message in a line, or InvalidLine."""
    try:
        value = decode(line)
    except Invalid as error:
        return _invalid_line(line, str(error), start, end)
    match value:
        case {"method": str(method), "id": id} if id is not None:
            return Request(id=id, method=method, params=value.get("params"), start=start, end=end)
        case {"method": str(method)}:
            return Notification(method=method, params=value.get("params"), start=start, end=end)
        case {"error": error} if error is not None:
            return _error(value.get("id"), error, start, end)
        case {"result": _} | {"id": _}:  # a result that is undefined in JavaScript leaves only the id
            return Response(id=value.get("id"), result=value.get("result"), start=start, end=end)
        case _:
            return _invalid_line(line, "not a JSON-RPC message", start, end)


def match_answer(id: Any, pending: Collection[int]) -> int | None:
    """Return the number of the pending request that an answer is for; None if it is for none.

    Some agents return the id as text or omit it: without an id, the only pending request is meant.
    """
    match id:
        case bool():
            return None
        case None:
            return next(iter(pending)) if len(pending) == 1 else None
        case int() if id in pending:
            return id
        case float() if id.is_integer() and int(id) in pending:
            return int(id)
        case str() if id.isascii() and id.isdecimal() and len(id) < 20 and int(id) in pending:
            return int(id)
    return None


def request(n: int, method: str, params: Any) -> bytes:
    """Return a JSON-RPC request as a line. `n` is its id, and the number of the line in the outbox."""
    return _line({"jsonrpc": "2.0", "id": n, "method": method, "params": params})


def notification(method: str, params: Any) -> bytes:
    """Return a JSON-RPC notification as a line."""
    return _line({"jsonrpc": "2.0", "method": method, "params": params})


def response(id: Any, result: Any) -> bytes:
    """Return a successful JSON-RPC answer as a line."""
    return _line({"jsonrpc": "2.0", "id": id, "result": result})


def error_response(id: Any, code: int, message: str, data: Any = None) -> bytes:
    """Return a JSON-RPC error answer as a line."""
    error = {"code": code, "message": message}
    return _line({"jsonrpc": "2.0", "id": id, "error": error if data is None else error | {"data": data}})


def _line(message: dict[str, Any]) -> bytes:
    """Return a JSON-RPC message as a line."""
    return encode(message) + b"\n"


def _error(id: Any, error: Any, start: int, end: int) -> ErrorResponse:
    """Return the error response with this error object, which agents send in various forms."""
    match error:
        case {"code": int(code), "message": str(message)}:
            data = error.get("data")
        case {"message": str(message)}:
            code, data = INTERNAL_ERROR, error
        case str(message):
            code, data = INTERNAL_ERROR, None
        case _:
            code, message, data = INTERNAL_ERROR, "an error without a message", error
    return ErrorResponse(id=id, code=code, message=message, data=data, start=start, end=end)


def _invalid_line(line: bytes, why: str, start: int, end: int) -> InvalidLine:
    """Return the value for a line that is not a message."""
    text = line[:MAX_INVALID_LINE_BYTES].decode("utf-8", "replace").rstrip("\r")
    return InvalidLine(text=text, why=why, start=start, end=end)
