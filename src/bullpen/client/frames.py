"""What comes from a terminal's socket, as values."""

from typing import Any, NamedTuple

import msgspec

_OFFSET = 8


class OutputFrame(NamedTuple):
    """Bytes of the program; `offset` is that of the first."""

    offset: int
    data: bytes

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


class HistoryFrame(NamedTuple):
    """The screen and what scrolled off it, to be drawn on an empty terminal; output goes on at `offset`."""

    offset: int
    cols: int
    rows: int
    data: bytes
    run: int | None = None


class SizeFrame(NamedTuple):
    """The size in force; `owner`: it is ours."""

    cols: int
    rows: int
    owner: bool


class ActivityFrame(NamedTuple):
    """What an agent in a terminal does, and why that is thought so."""

    activity: str
    why: str


class ExitFrame(NamedTuple):
    """The program ended; no byte comes after this."""

    code: int | None
    signal: str | None


class ErrorFrame(NamedTuple):
    """The server would not do something."""

    error: str
    message: str


class Disconnected(NamedTuple):
    """The connection is gone; it is being opened again."""


class Reconnected(NamedTuple):
    """The connection is open, for the first time or again."""


class InputAccepted(NamedTuple):
    """Input up to n has reached the keeper."""

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


def read(message: str | bytes) -> Frame | InputAccepted | None:
    """One message; None for a kind that is newer than this client."""
    if isinstance(message, bytes):
        return OutputFrame(int.from_bytes(message[:_OFFSET], "big"), message[_OFFSET:])
    return _read_object(msgspec.json.decode(message))


def _read_object(message: Any) -> Frame | InputAccepted | None:
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
