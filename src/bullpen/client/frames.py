"""What comes from a terminal's socket, as values."""

from typing import Any, NamedTuple

import msgspec

_OFFSET = 8


class Output(NamedTuple):
    """Bytes of the program; `offset` is that of the first."""

    offset: int
    data: bytes

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


class History(NamedTuple):
    """The screen and what scrolled off it, to be drawn on an empty terminal; output goes on at `offset`."""

    offset: int
    cols: int
    rows: int
    data: bytes
    run: int | None = None


class Size(NamedTuple):
    """The size in force; `owner`: it is ours."""

    cols: int
    rows: int
    owner: bool


class Activity(NamedTuple):
    """What an agent in a terminal does, and why that is thought so."""

    activity: str
    why: str


class Exit(NamedTuple):
    """The program ended; no byte comes after this."""

    code: int | None
    signal: str | None


class Refused(NamedTuple):
    """The server would not do something."""

    error: str
    message: str


class Lost(NamedTuple):
    """The connection is gone; it is being opened again."""


class Back(NamedTuple):
    """The connection is open, for the first time or again."""


class Taken(NamedTuple):
    """Input up to n has reached the keeper."""

    n: int


Frame = Output | History | Size | Activity | Exit | Refused | Lost | Back


def read(message: str | bytes) -> Frame | Taken | None:
    """One message; None for a kind that is newer than this client."""
    if isinstance(message, bytes):
        return Output(int.from_bytes(message[:_OFFSET], "big"), message[_OFFSET:])
    return _read_object(msgspec.json.decode(message))


def _read_object(message: Any) -> Frame | Taken | None:
    frame: Frame | Taken | None = None
    match message:
        case {"type": "ack", "n": int(n)}:
            frame = Taken(n)
        case {
            "type": "history",
            "offset": int(offset),
            "cols": int(cols),
            "rows": int(rows),
            "data": str(data),
        }:
            frame = History(offset, cols, rows, data.encode(), message.get("run"))
        case {"type": "size", "cols": int(cols), "rows": int(rows)}:
            frame = Size(cols, rows, bool(message.get("owner")))
        case {"type": "exit"}:
            frame = Exit(message.get("exitCode"), message.get("signal"))
        case {"type": "activity", "state": str(activity)}:
            frame = Activity(activity, str(message.get("why") or ""))
        case {"type": "error"}:
            frame = Refused(str(message.get("error")), str(message.get("message")))
    return frame
