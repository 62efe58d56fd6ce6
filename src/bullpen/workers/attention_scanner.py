"""Find the calls for attention in terminal output: the bell, and desktop notifications (OSC 9, OSC 777)."""

import re

MAX_HELD_BYTES = 4 << 10  # of an unfinished sequence that are kept until its end arrives
MAX_TEXT_LENGTH = 80  # characters of a notification

_OSC = re.compile(rb"\x1b\](?P<body>[^\x07\x1b\x18\x1a]*)(?:\x07|\x1b\\)")
_STRING = re.compile(rb"\x1b[\]P_X^][^\x07\x1b\x18\x1a]*(?:\x07|\x1b\\|[\x18\x1a])")
_UNFINISHED = re.compile(rb"\x1b(?:[\]P_X^][^\x07\x1b\x18\x1a]*\x1b?)?\Z")
_PROGRESS = re.compile(rb"9;4(;|\Z)")  # a progress bar of ConEmu, not a call


class AttentionScanner:
    """Scans the output of one program, piece by piece and in order."""

    def __init__(self) -> None:
        self._unfinished = b""

    def find_last(self, data: bytes) -> str | None:
        """Return a description of the last call that ends in this piece of output; None if none ends in it.

        The beginning of an unfinished call is kept for the next piece.
        """
        data = self._unfinished + data
        unfinished = _UNFINISHED.search(data)
        cut = (
            unfinished.start()
            if unfinished and len(data) - unfinished.start() <= MAX_HELD_BYTES
            else len(data)
        )
        data, self._unfinished = data[:cut], data[cut:]
        found = [call for call in map(_describe, _OSC.finditer(data)) if call]
        if b"\x07" in _STRING.sub(b"", data):
            found = found or ["it rang the bell"]
        return found[-1] if found else None


def _describe(osc: re.Match[bytes]) -> str | None:
    """Return the text of a notification, or None for another operating system command."""
    body = osc["body"]
    if body.startswith(b"9;") and not _PROGRESS.match(body):
        text = body[2:]
    elif body.startswith(b"777;notify;"):
        text = body[len(b"777;notify;") :].replace(b";", b": ", 1)
    else:
        return None
    printable = "".join(letter if letter.isprintable() else " " for letter in text.decode(errors="replace"))
    return f"it says “{' '.join(printable.split())[:MAX_TEXT_LENGTH]}”"
