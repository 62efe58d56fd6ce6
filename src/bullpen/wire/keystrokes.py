"""Encode what Bullpen types to an agent in a terminal: texts as a paste, and keys, each with its fact."""

import re
from collections.abc import Iterator

from msgspec import Struct

from ..domain.conversation import NoticeSent
from ..domain.events import Fact
from ..domain.screen_patterns import TypingKeys

# A user's own keystrokes may come between two pieces, so a text is split only if it is longer than this.
PIECE_BYTES = 64 << 10

PASTE_START, PASTE_END = b"\x1b[200~", b"\x1b[201~"

# All but tab and newline: an escape sequence could end the paste and turn the following text into keys.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Keystrokes(Struct, frozen=True):
    """Bytes to type into an agent's terminal. `method` names their purpose in the fact."""

    method: str
    data: bytes

    def line(self, n: int) -> bytes:
        """Return the bytes; they do not depend on the number of the line."""
        return self.data

    def fact(self, n: int) -> Fact:
        """Return the fact that records the keystrokes."""
        return NoticeSent(n=n, method=self.method)


class TypingMode(Struct, frozen=True, kw_only=True):
    """How to type to the program in a terminal at this moment."""

    keys: TypingKeys
    bracketed: bool  # whether the program has turned on bracketed paste
    image_paths: tuple[str, ...] = ()

    def prompt(self, text: str) -> list[Keystrokes]:
        """Return the keystrokes that send a prompt: its text and images as a paste, and the submit key."""
        message = " ".join([text, *(image_reference(path, self.keys) for path in self.image_paths)])
        pieces = [Keystrokes("paste", piece) for piece in _split(self.paste(message.strip()))]
        return [*pieces, Keystrokes("submit", self.keys.submit.encode())]

    def paste(self, text: str) -> bytes:
        """Return the bytes that paste a text into the terminal."""
        text = strip_controls(text)
        if self.bracketed:
            return PASTE_START + text.encode() + PASTE_END
        return text.replace("\n", self.keys.newline).encode()


def interrupt(keys: TypingKeys) -> Keystrokes:
    """Return the keystrokes that interrupt the agent's turn."""
    return Keystrokes("session/cancel", keys.interrupt.encode())


def strip_controls(text: str) -> str:
    """Return the text without control characters that a program would take for keys."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", text.encode("utf-8", "replace").decode())


def image_reference(path: str, keys: TypingKeys) -> str:
    """Return the text that refers an agent to an image file."""
    return keys.image.replace("{path}", path)


def _split(data: bytes) -> Iterator[bytes]:
    """Yield the data in pieces of at most PIECE_BYTES."""
    for start in range(0, len(data), PIECE_BYTES):
        yield data[start : start + PIECE_BYTES]
