"""How a program calls for a person: the bell, and the notices that terminals show as windows (OSC 9, 777)."""

import re

LOOK_BACK = 4 << 10  # bytes of an unfinished sequence that are worth waiting for its end
WORDS = 80  # of a notice, in characters

_OSC = re.compile(rb"\x1b\](?P<body>[^\x07\x1b\x18\x1a]*)(?:\x07|\x1b\\)")
_STRING = re.compile(rb"\x1b[\]P_X^][^\x07\x1b\x18\x1a]*(?:\x07|\x1b\\|[\x18\x1a])")
_UNFINISHED = re.compile(rb"\x1b(?:[\]P_X^][^\x07\x1b\x18\x1a]*\x1b?)?\Z")
_PROGRESS = re.compile(rb"9;4(;|\Z)")  # of ConEmu: a bar, not a call


class CallScanner:
    """Fed what a program writes, in order; knows the last call in it."""

    def __init__(self) -> None:
        self._rest = b""

    def find(self, data: bytes) -> str | None:
        """The last call that ends in these bytes, in words."""
        data = self._rest + data
        half = _UNFINISHED.search(data)
        cut = half.start() if half and len(data) - half.start() <= LOOK_BACK else len(data)
        data, self._rest = data[:cut], data[cut:]
        found = [call for call in map(_words, _OSC.finditer(data)) if call]
        if b"\x07" in _STRING.sub(b"", data):
            found = found or ["it rang the bell"]
        return found[-1] if found else None


def _words(osc: re.Match[bytes]) -> str | None:
    body = osc["body"]
    if body.startswith(b"9;") and not _PROGRESS.match(body):
        text = body[2:]
    elif body.startswith(b"777;notify;"):
        text = body[len(b"777;notify;") :].replace(b";", b": ", 1)
    else:
        return None
    words = "".join(letter if letter.isprintable() else " " for letter in text.decode(errors="replace"))
    return f"it says “{' '.join(words.split())[:WORDS]}”"
