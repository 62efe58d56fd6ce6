"""Detect quickly whether output may contain a query to the terminal; false positives are allowed.

Only output that may contain a query is emulated at once; all other output can wait in the spool.
"""

import re
from itertools import islice

LOOK_BACK_BYTES = 256  # longer queries are strings, which are detected by their ends
MAX_SEQUENCES = 1000  # of one chunk that are parsed; with more, a query is assumed
LONG_BYTES = 4096  # a longer chunk is first searched for anything but colours and cursor moves

_INSIDE = rb"[\x00-\x17\x19\x1c-\x3f]"  # parameters, and control characters, which do not end a sequence
_QUERY = re.compile(
    rb"\x1b(?:"
    rb"Z"  # DECID
    rb"|\[" + _INSIDE + rb'*+(?:[cntwxy]|(?<=[$"&])[pquv])'  # DA, DSR, window reports, …; DECRQM, …
    rb"|\[[>?]" + _INSIDE + rb"*+[Smqu]"  # XTSMGRAPHICS, XTQMODKEYS, XTVERSION, kitty keyboard
    rb"|(?P<string>[\]P_X^])(?P<body>[^\x07\x18\x1a\x1b]*+)(?:(?P<end>\x07|\x1b\\)|(?=[\x18\x1a\x1b]))"
    rb"|\\"  # the end of a string that began before this data
    rb")"
)
_SIZE_REPORTS = re.compile(rb"\x1b\[\?" + _INSIDE + rb"*2048" + _INSIDE + rb"*+h")

# Sequences that colour text or move the cursor. Without their numbers, and with their final letters made
# equal, they are one of a few byte strings.
_NUMBERS = b"0123456789;:"
_FINAL_LETTERS = b"@ABCDEFGHIJKLMPSTXZ`abdefgrs"
_MAKE_EQUAL = bytes.maketrans(_FINAL_LETTERS + b"l", b"m" * len(_FINAL_LETTERS) + b"h")
_COLOUR_OR_MOVE = b"\x1b[m"
_HARMLESS = (_COLOUR_OR_MOVE, b"\x1b[?h", b"\x1b(m")  # also modes and character sets


def may_contain_query(tail: bytes, chunk: bytes) -> bool:
    """Return whether a query may end in `chunk`; `tail` is the output before it (LOOK_BACK_BYTES at most).

    Text and colours alone are never taken for a query.
    """
    if b"\x05" in chunk or chunk.endswith(b"\x1b"):  # ENQ; an ESC by itself may end a string
        return True
    if b"\x1b" not in chunk and b"\x1b" not in tail:
        return b"\x07" in chunk  # it may end a string that began long before
    data, seen = tail + chunk, len(tail)
    if len(chunk) > LONG_BYTES and b"\x07" not in chunk:
        last = data.rfind(b"\x1b")  # it may be incomplete
        if _is_harmless(data[:last]):
            data, seen = data[last:], max(0, seen - last)
    return _has_query(data, seen)


def _is_harmless(data: bytes) -> bool:
    """Return whether all sequences only colour text or move the cursor: faster than parsing them."""
    stripped = data.translate(_MAKE_EQUAL, _NUMBERS)
    sequences = stripped.count(b"\x1b")
    if sequences == stripped.count(_COLOUR_OR_MOVE):
        return True
    return sequences == sum(map(stripped.count, _HARMLESS)) and b"2048" not in data


def _has_query(data: bytes, seen: int) -> bool:
    """Return whether a query may end in `data` behind the first `seen` bytes."""
    after_last = seen
    candidates = _QUERY.finditer(data)
    for found in islice(candidates, MAX_SEQUENCES):
        start, end = found.span()
        if data.find(b"\x07", after_last, start) >= 0:
            return True  # it may end a string, so it need not be a bell
        is_new = end > seen or (end == seen and bool(found["string"]) and not found["end"])
        if is_new and _is_query(found):
            return True
        after_last = max(seen, end)
    if next(candidates, None) or data.find(b"\x07", after_last) >= 0:
        return True
    return b"2048" in data and bool(_SIZE_REPORTS.search(data))


def _is_query(found: re.Match[bytes]) -> bool:
    """Return whether a matched sequence is a query: some strings are not."""
    match found["string"]:
        case b"]":
            return b"?" in found["body"] or found["body"].startswith(b"5522")
        case b"X" | b"^":
            return False
    return True
