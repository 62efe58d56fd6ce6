"""Whether a program may have asked its terminal something: a cheap look that errs towards yes.

Only bytes that may hold a question reach the emulator at once; all others can wait in the spool.
"""

import re
from itertools import islice

LOOK_BACK = 256  # bytes; longer questions are strings, and those are recognised by their ends
PATIENCE = 1000  # sequences worth a closer look in one chunk
LONG = 4096  # bytes: of more, a glance comes before the closer look

_INSIDE = rb"[\x00-\x17\x19\x1c-\x3f]"  # parameters, and control characters, which do not end a sequence
_QUESTION = re.compile(
    rb"\x1b(?:"
    rb"Z"  # DECID
    rb"|\[" + _INSIDE + rb'*+(?:[cntwxy]|(?<=[$"&])[pquv])'  # DA, DSR, window reports, …; DECRQM, …
    rb"|\[[>?]" + _INSIDE + rb"*+[Smqu]"  # XTSMGRAPHICS, XTQMODKEYS, XTVERSION, kitty keyboard
    rb"|(?P<string>[\]P_X^])(?P<body>[^\x07\x18\x1a\x1b]*+)(?:(?P<end>\x07|\x1b\\)|(?=[\x18\x1a\x1b]))"
    rb"|\\"  # the end of a string that began before we look
    rb")"
)
_SIZE_REPORTS = re.compile(rb"\x1b\[\?" + _INSIDE + rb"*2048" + _INSIDE + rb"*+h")

# What colours text and moves the cursor: without its numbers it is one of these, once its letters are alike.
_NUMBERS = b"0123456789;:"
_ACTIONS = b"@ABCDEFGHIJKLMPSTXZ`abdefgrs"
_ALIKE = bytes.maketrans(_ACTIONS + b"l", b"m" * len(_ACTIONS) + b"h")
_PAINTS = b"\x1b[m"
_HARMLESS = (_PAINTS, b"\x1b[?h", b"\x1b(m")  # modes and character sets besides


def may_ask(tail: bytes, chunk: bytes) -> bool:
    """Whether a question ends in `chunk`; `tail` is what came right before it, up to LOOK_BACK bytes.

    Text and colours alone never ask.
    """
    if b"\x05" in chunk or chunk.endswith(b"\x1b"):  # ENQ; an ESC by itself may end a string
        return True
    if b"\x1b" not in chunk and b"\x1b" not in tail:
        return b"\x07" in chunk  # it may end a string that began long before
    data, seen = tail + chunk, len(tail)
    if len(chunk) > LONG and b"\x07" not in chunk:
        last = data.rfind(b"\x1b")  # may not be whole
        if _only_paints(data[:last]):
            data, seen = data[last:], max(0, seen - last)
    return _asks(data, seen)


def _only_paints(data: bytes) -> bool:
    """Whether all its sequences are harmless: a fifth of the work of a closer look, and mostly enough."""
    bare = data.translate(_ALIKE, _NUMBERS)
    left = bare.count(b"\x1b")
    if left == bare.count(_PAINTS):
        return True
    return left == sum(map(bare.count, _HARMLESS)) and b"2048" not in data


def _asks(data: bytes, seen: int) -> bool:
    after_last = seen
    candidates = _QUESTION.finditer(data)
    for found in islice(candidates, PATIENCE):
        start, end = found.span()
        if data.find(b"\x07", after_last, start) >= 0:
            return True  # not a bell, for all we know
        is_new = end > seen or (end == seen and bool(found["string"]) and not found["end"])
        if is_new and _is_question(found):
            return True
        after_last = max(seen, end)
    if next(candidates, None) or data.find(b"\x07", after_last) >= 0:
        return True
    return b"2048" in data and bool(_SIZE_REPORTS.search(data))


def _is_question(found: re.Match[bytes]) -> bool:
    match found["string"]:
        case b"]":
            return b"?" in found["body"] or found["body"].startswith(b"5522")
        case b"X" | b"^":
            return False
    return True
