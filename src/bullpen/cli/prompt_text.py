"""What a person says to an agent, as an argument or on standard input."""

import sys

from ..domain.errors import Invalid

FROM_STDIN = "-"


def words_of(text: str) -> str:
    """The argument, or for `-` all of standard input; refused when it says nothing."""
    words = _read_all() if text == FROM_STDIN else text
    if not words.strip():
        raise Invalid("a message must not be empty")
    return words


def _read_all() -> str:
    if sys.stdin.isatty():
        print("bullpen: reading the message from here; Ctrl-D ends it", file=sys.stderr)
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise Invalid("what came on standard input is no text in UTF-8") from None
