"""What is typed to an agent in a terminal, as bytes: a text as a paste, and keys, each with its fact."""

import re
from collections.abc import Iterator

from msgspec import Struct

from ..domain.conversation import NoticeSent
from ..domain.events import Fact
from ..domain.signs import TypingKeys

# A person's own keystrokes may come between two pieces; texts that fit into one are whole.
PIECE = 64 << 10  # bytes

BEGIN, END = b"\x1b[200~", b"\x1b[201~"

# All but tab and newline: an escape could end the paste, and what follows it would be keys.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Keystrokes(Struct, frozen=True):
    """Bytes for a terminal; `method` says what they are for."""

    method: str
    data: bytes

    def line(self, n: int) -> bytes:
        return self.data

    def fact(self, n: int) -> Fact:
        return NoticeSent(n=n, method=self.method)


class TypingMode(Struct, frozen=True, kw_only=True):
    """How a program is typed to at this moment."""

    keys: TypingKeys
    bracketed: bool  # whether it knows a paste when it gets one
    image_paths: tuple[str, ...] = ()

    def prompt(self, text: str) -> list[Keystrokes]:
        """The text as one paste, then the key that submits it, apart."""
        spoken = " ".join([text, *(spoken_of(path, self.keys) for path in self.image_paths)])
        pieces = [Keystrokes("paste", piece) for piece in _pieces(self.paste(spoken.strip()))]
        return [*pieces, Keystrokes("submit", self.keys.submit.encode())]

    def paste(self, text: str) -> bytes:
        text = clean(text)
        if self.bracketed:
            return BEGIN + text.encode() + END
        return text.replace("\n", self.keys.newline).encode()


def interrupt(keys: TypingKeys) -> Keystrokes:
    return Keystrokes("session/cancel", keys.interrupt.encode())


def clean(text: str) -> str:
    """A text without anything a terminal or a program would take for a key."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", text.encode("utf-8", "replace").decode())


def spoken_of(path: str, keys: TypingKeys) -> str:
    """An image in a file, as the agent wants to be told of it."""
    return keys.image.replace("{path}", path)


def _pieces(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]
