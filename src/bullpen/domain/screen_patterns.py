"""How to recognize the activity of an agent in a terminal on its screen, and which keys to type to it."""

import re
from functools import lru_cache

from msgspec import Struct

from .errors import Invalid
from .states import Activity

MAX_LINES = 200
MAX_SECONDS = 3600.0
MAX_TYPING_SECONDS = 10.0  # a user waits for their message to be submitted
MAX_REASON_LENGTH = 60


class ScreenPatterns(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Regular expressions that show an agent's activity when they match the last lines of its screen."""

    asking: tuple[str, ...] = ()  # the agent waits for an answer of the user
    busy: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()  # the empty prompt
    lines: int = 20  # the number of non-blank lines to search, from the bottom
    settle: float = 1.0  # seconds the screen must look idle before the turn has ended
    silence: float = 15.0  # seconds without output after which the agent counts as idle


class TypingKeys(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The keys and texts to type to an agent in a terminal."""

    submit: str = "\r"
    interrupt: str = "\x1b"
    newline: str = "\n"  # within a text, for programs without bracketed paste
    image: str = "{path}"  # the text that refers to an image file
    echo: float = 5.0  # seconds to wait until the typed text is drawn; some programs draw nothing
    pause: float = 0.2  # seconds from then until the submit key


class JudgedActivity(Struct, frozen=True):
    """An activity with the reason why it was concluded."""

    activity: Activity
    why: str


def read_screen(signs: ScreenPatterns, text: str) -> JudgedActivity | None:
    """Return the activity that the last lines of a screen show, or None if no pattern matches.

    The patterns are tried in this order: asking, active, idle.
    """
    lines = [line.rstrip() for line in text.splitlines() if line.strip()][-signs.lines :]
    stripped, padded = "\n".join(lines), "".join(f"{line} \n" for line in lines)
    for activity, patterns in (
        (Activity.ASKING, signs.asking),
        (Activity.ACTIVE, signs.busy),
        (Activity.IDLE, signs.idle),
    ):
        for pattern in patterns:
            if found := _compiled(pattern).search(stripped) or _compiled(pattern).search(padded):
                return JudgedActivity(activity, f"its screen shows “{_one_line(found[0])}”")
    return None


def check_signs(signs: ScreenPatterns, source: str) -> None:
    """Raise Invalid, naming `source`, if a screen pattern or a number of a definition is invalid."""
    for name in ("asking", "busy", "idle"):
        for pattern in getattr(signs, name):
            _check_pattern(pattern, f"{source}: signs.{name}")
    if not 1 <= signs.lines <= MAX_LINES:
        raise Invalid(f"{source}: signs.lines is a number from 1 to {MAX_LINES}")
    for name in ("settle", "silence"):
        if not 0 <= getattr(signs, name) <= MAX_SECONDS:
            raise Invalid(f"{source}: signs.{name} is a number of seconds, at most {MAX_SECONDS:.0f}")


def check_keys(keys: TypingKeys, source: str) -> None:
    """Raise Invalid, naming `source`, if a key of a definition is missing or a number is invalid."""
    if not keys.submit or not keys.interrupt:
        raise Invalid(f"{source}: keys.submit and keys.interrupt must not be empty")
    if "{path}" not in keys.image:
        raise Invalid(f"{source}: keys.image needs a {{path}} in it")
    for name in ("echo", "pause"):
        if not 0 <= getattr(keys, name) <= MAX_TYPING_SECONDS:
            raise Invalid(f"{source}: keys.{name} is a number of seconds, at most {MAX_TYPING_SECONDS:.0f}")


def _check_pattern(pattern: str, place: str) -> None:
    """Raise Invalid if a pattern is not a regular expression, or matches every screen."""
    try:
        matches_nothing = _compiled(pattern).search("")
    except re.error as error:
        raise Invalid(f"{place} has {pattern!r}, which is not a regular expression: {error}") from None
    if matches_nothing:
        raise Invalid(f"{place} has {pattern!r}, which is found on every screen")


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern as a compiled regular expression, in which ^ and $ match at each line."""
    return re.compile(pattern, re.MULTILINE)


def _one_line(text: str) -> str:
    """Return the text as one short line of printable characters."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(printable.split())[:MAX_REASON_LENGTH]
