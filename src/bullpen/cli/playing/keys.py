"""Map the bytes of typed keys to commands of the player."""

from collections.abc import Iterator
from enum import Enum, auto


class PlayerKey(Enum):
    """A command that the user gives with a key."""

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
    b" ": PlayerKey.PAUSE,
    b"\x1b[C": PlayerKey.FORWARD,
    b"\x1b[D": PlayerKey.BACK,
    b"\x1bOC": PlayerKey.FORWARD,
    b"\x1bOD": PlayerKey.BACK,
    b".": PlayerKey.STEP,
    b"n": PlayerKey.NEXT_MARK,
    b"+": PlayerKey.FASTER,
    b"=": PlayerKey.FASTER,
    b"\x1b[A": PlayerKey.FASTER,
    b"\x1bOA": PlayerKey.FASTER,
    b"-": PlayerKey.SLOWER,
    b"\x1b[B": PlayerKey.SLOWER,
    b"\x1bOB": PlayerKey.SLOWER,
    b"0": PlayerKey.START,
    b"q": PlayerKey.QUIT,
    b"\x03": PlayerKey.QUIT,
    b"\x04": PlayerKey.QUIT,
}


def keys_in(data: bytes) -> Iterator[PlayerKey]:
    """Yield the commands in typed bytes; QUIT for no bytes, which mean that the terminal was closed."""
    if not data:
        yield PlayerKey.QUIT
    while data:
        length = next((size for size in (3, 1) if data[:size] in KEYS), 1)
        if key := KEYS.get(data[:length]):
            yield key
        data = data[length:]
