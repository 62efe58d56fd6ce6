"""A JSON-RPC peer without I/O: the bytes of a stream become lines, and lines become messages.

Every value knows where its line stands in the stream, so that whoever stores its effects can say how far
the stream is consumed. What is no message is a value too: nothing an agent says is lost or raises.
"""

from collections.abc import Collection
from typing import Any

from msgspec import Struct

from ..domain.errors import Invalid
from .json import decode, encode

MAX_LINE = 64 << 20
KEPT_NOISE = 8 << 10  # of a line that is no message, this much is kept

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603

_BLANK = b" \t\r\n\v\f"


class Line(Struct, frozen=True, kw_only=True):
    """Where it began and where the next one begins, counted from the first byte of the stream."""

    start: int
    end: int


class Request(Line, frozen=True, kw_only=True):
    """Something to be answered; `id` is theirs, of any type, and serves only the answer."""

    id: Any
    method: str
    params: Any = None


class Notification(Line, frozen=True, kw_only=True):
    method: str
    params: Any = None


class Response(Line, frozen=True, kw_only=True):
    id: Any
    result: Any = None


class ErrorResponse(Line, frozen=True, kw_only=True):
    id: Any
    code: int
    message: str
    data: Any = None


class InvalidLine(Line, frozen=True, kw_only=True):
    """A line that is no message: its beginning, and why it is none."""

    text: str
    why: str


class LineTooLong(Line, frozen=True, kw_only=True):
    """A line has become too long: all of it is left out, up to its end, wherever that is."""


class LongLineEnd(Line, frozen=True, kw_only=True):
    """The end of a line that was left out."""

    size: int


class JsonRpcPeer:
    """Reads a stream from `offset` on; `skipping` is where a line began that is being left out."""

    def __init__(self, offset: int = 0, skipping: int | None = None, limit: int = MAX_LINE) -> None:
        self.offset = offset
        self._limit = limit
        self._start = offset if skipping is None else skipping
        self._skipping = skipping is not None
        self._half = bytearray()

    @property
    def passed(self) -> int:
        """How far nothing has to be read again: half a line has to be, a line left out has not."""
        return self.offset if self._skipping else self._start

    def feed(self, data: bytes) -> list[Line]:
        """The lines that end in these bytes, each once, however the bytes are cut."""
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
        """The stream has ended: what stands there without a newline is its last line."""
        found: list[Line] = []
        if self.offset > self._start:
            self._end_line(0, found)
        return found

    def _take(self, piece: memoryview, found: list[Line]) -> None:
        self.offset += len(piece)
        if self._skipping:
            return
        if len(self._half) + len(piece) > self._limit:
            self._skipping = True
            self._half = bytearray()
            # Not the offset: the same stream gives the same values however it is cut.
            found.append(LineTooLong(start=self._start, end=self._start + self._limit))
            return
        self._half += piece

    def _end_line(self, newline: int, found: list[Line]) -> None:
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
    """The message a line carries, or the noise it is."""
    try:
        value = decode(line)
    except Invalid as error:
        return _noise(line, str(error), start, end)
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
            return _noise(line, "not a JSON-RPC message", start, end)


def answered(id: Any, waiting: Collection[int]) -> int | None:
    """Which of our requests an answer is for: agents give our number back as text, or not at all."""
    match id:
        case bool():
            return None
        case None:
            return next(iter(waiting)) if len(waiting) == 1 else None
        case int() if id in waiting:
            return id
        case float() if id.is_integer() and int(id) in waiting:
            return int(id)
        case str() if id.isascii() and id.isdecimal() and len(id) < 20 and int(id) in waiting:
            return int(id)
    return None


def request(n: int, method: str, params: Any) -> bytes:
    """A request of ours as a line; its id is its number in the outbox."""
    return _line({"jsonrpc": "2.0", "id": n, "method": method, "params": params})


def notification(method: str, params: Any) -> bytes:
    return _line({"jsonrpc": "2.0", "method": method, "params": params})


def response(id: Any, result: Any) -> bytes:
    return _line({"jsonrpc": "2.0", "id": id, "result": result})


def error_response(id: Any, code: int, message: str, data: Any = None) -> bytes:
    error = {"code": code, "message": message}
    return _line({"jsonrpc": "2.0", "id": id, "error": error if data is None else error | {"data": data}})


def _line(message: dict[str, Any]) -> bytes:
    return encode(message) + b"\n"


def _error(id: Any, error: Any, start: int, end: int) -> ErrorResponse:
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


def _noise(line: bytes, why: str, start: int, end: int) -> InvalidLine:
    text = line[:KEPT_NOISE].decode("utf-8", "replace").rstrip("\r")
    return InvalidLine(text=text, why=why, start=start, end=end)
