"""What keys mean to a player."""

from collections.abc import Iterator
from enum import Enum, auto


class Key(Enum):
    PAUSE = auto()
    FORWARD = auto()
    BACK = auto()
    STEP = auto()
    NEXT_MARK = auto()
    FASTER = auto()
    SLOWER = auto()
    START = auto()
    QUIT = auto()


KEYS = {
    b" ": Key.PAUSE,
    b"\x1b[C": Key.FORWARD,
    b"\x1b[D": Key.BACK,
    b"\x1bOC": Key.FORWARD,
    b"\x1bOD": Key.BACK,
    b".": Key.STEP,
    b"n": Key.NEXT_MARK,
    b"+": Key.FASTER,
    b"=": Key.FASTER,
    b"\x1b[A": Key.FASTER,
    b"\x1bOA": Key.FASTER,
    b"-": Key.SLOWER,
    b"\x1b[B": Key.SLOWER,
    b"\x1bOB": Key.SLOWER,
    b"0": Key.START,
    b"q": Key.QUIT,
    b"\x03": Key.QUIT,
    b"\x04": Key.QUIT,
}


def keys_in(data: bytes) -> Iterator[Key]:
    """The keys in what was typed; nothing at all means that the terminal is gone."""
    if not data:
        yield Key.QUIT
    while data:
        length = next((size for size in (3, 1) if data[:size] in KEYS), 1)
        if key := KEYS.get(data[:length]):
            yield key
        data = data[length:]
