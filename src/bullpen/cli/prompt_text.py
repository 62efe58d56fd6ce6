"""Read the text of a prompt from an argument or from standard input."""

import sys

from ..domain.errors import Invalid

FROM_STDIN = "-"


def read_prompt(argument: str) -> str:
    """Return the argument or, for `-`, all of standard input; raise Invalid for an empty text."""
    text = _read_stdin() if argument == FROM_STDIN else argument
    if not text.strip():
        raise Invalid("a message must not be empty")
    return text


def _read_stdin() -> str:
    """Return the text on standard input, or raise Invalid if it is not UTF-8."""
    if sys.stdin.isatty():
        print("bullpen: reading the message from here; Ctrl-D ends it", file=sys.stderr)
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise Invalid("standard input is not UTF-8 text") from None
