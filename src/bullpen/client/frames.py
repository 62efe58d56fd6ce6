"""Parse the messages of a terminal's WebSocket into typed frames."""

from typing import Any, NamedTuple

import msgspec

_OFFSET_BYTES = 8


class OutputFrame(NamedTuple):
    """Output of the program; `offset` is the position of its first byte in the run's output."""

    offset: int
    data: bytes

    @property
    def end(self) -> int:
        """The offset behind the last byte."""
        return self.offset + len(self.data)


class HistoryFrame(NamedTuple):
    """Bytes that draw the screen and its scrollback on an empty terminal; output continues at `offset`."""

    offset: int
    cols: int
    rows: int
    data: bytes
    run: int | None = None


class SizeFrame(NamedTuple):
    """The size of the terminal; `owner` says whether this client decides it."""

    cols: int
    rows: int
    owner: bool


class ActivityFrame(NamedTuple):
    """The activity of an agent in a terminal, and the reason for that verdict."""

    activity: str
    why: str


class ExitFrame(NamedTuple):
    """The program ended with an exit code or by a signal; no output follows."""

    code: int | None
    signal: str | None


class ErrorFrame(NamedTuple):
    """The server refused a message of this client."""

    error: str
    message: str


class Disconnected(NamedTuple):
    """The connection was lost; the client is opening it again."""


class Reconnected(NamedTuple):
    """The connection is open, for the first time or again."""


class InputAccepted(NamedTuple):
    """The keeper has received all input up to batch number `n`."""

    n: int


Frame = (
    OutputFrame
    | HistoryFrame
    | SizeFrame
    | ActivityFrame
    | ExitFrame
    | ErrorFrame
    | Disconnected
    | Reconnected
)


def parse_frame(message: str | bytes) -> Frame | InputAccepted | None:
    """Return the frame of one message, or None for a type newer than this client."""
    if isinstance(message, bytes):
        return OutputFrame(int.from_bytes(message[:_OFFSET_BYTES], "big"), message[_OFFSET_BYTES:])
    return _parse_object(msgspec.json.decode(message))


def _parse_object(message: Any) -> Frame | InputAccepted | None:
    """Return the frame of a decoded JSON message, or None for an unknown type."""
    frame: Frame | InputAccepted | None = None
    match message:
        case {"type": "ack", "n": int(n)}:
            frame = InputAccepted(n)
        case {
            "type": "history",
            "offset": int(offset),
            "cols": int(cols),
            "rows": int(rows),
            "data": str(data),
        }:
            frame = HistoryFrame(offset, cols, rows, data.encode(), message.get("run"))
        case {"type": "size", "cols": int(cols), "rows": int(rows)}:
            frame = SizeFrame(cols, rows, bool(message.get("owner")))
        case {"type": "exit"}:
            frame = ExitFrame(message.get("exitCode"), message.get("signal"))
        case {"type": "activity", "state": str(activity)}:
            frame = ActivityFrame(activity, str(message.get("why") or ""))
        case {"type": "error"}:
            frame = ErrorFrame(str(message.get("error")), str(message.get("message")))
    return frame
