"""Write terminal recordings as asciicast v2, the file format of asciinema."""

import codecs
from collections.abc import Iterable, Iterator
from typing import Any

from .json import encode

Piece = tuple[int, bytes, int, int]  # time in ns, bytes, and a new size (0, 0: none)


def encode_cast(title: str, pieces: Iterable[Piece]) -> Iterator[bytes]:
    """Yield the lines of a cast file; times are seconds since the first piece."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    began: int | None = None
    for time, data, cols, rows in pieces:
        first = began is None
        began = time if began is None else began
        seconds = round((time - began) / 1e9, 6)
        if first:
            yield _json_line(_header(title, began, cols or 80, rows or 24))
        elif cols:
            yield _json_line([seconds, "r", f"{cols}x{rows}"])
        if text := decoder.decode(data):
            yield _json_line([seconds, "o", text])
    if began is None:
        yield _json_line(_header(title, 0, 80, 24))


def _header(title: str, began: int, cols: int, rows: int) -> dict[str, Any]:
    """Return the header of a cast file."""
    return {
        "version": 2,
        "width": cols,
        "height": rows,
        "timestamp": began // 1_000_000_000,
        "title": title,
        "env": {"TERM": "xterm-256color"},
    }


def _json_line(value: Any) -> bytes:
    """Return a value as a line of JSON."""
    return encode(value) + b"\n"
