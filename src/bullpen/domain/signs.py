"""How an agent in a terminal shows what it does, and how it is typed to: data of its definition."""

import re
from functools import lru_cache

from msgspec import Struct

from .errors import Invalid
from .states import Activity

MOST_LINES = 200
MOST_SECONDS = 3600.0
MOST_PATIENCE = 10.0  # seconds; a person waits for what they sent
WHY_LENGTH = 60


class ScreenPatterns(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What of an agent's screen tells its activity: regular expressions on its last lines."""

    asking: tuple[str, ...] = ()  # it waits for a person's answer
    busy: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()  # its prompt, empty
    lines: int = 20  # how many lines that are not blank are looked at, from the bottom
    settle: float = 1.0  # seconds it must look idle before a turn is over
    silence: float = 15.0  # seconds without a word after which it is idle, whatever it shows


class TypingKeys(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What is typed to an agent in a terminal."""

    submit: str = "\r"
    interrupt: str = "\x1b"
    newline: str = "\n"  # inside of a text, for a program that takes no bracketed paste
    image: str = "{path}"  # how an image in a file is spoken of
    echo: float = 5.0  # seconds a text may take to be drawn; some programs draw nothing
    pause: float = 0.2  # seconds between that and the key that submits it


class JudgedActivity(Struct, frozen=True):
    """An activity, and why we think so."""

    activity: Activity
    why: str


def read_screen(signs: ScreenPatterns, text: str) -> JudgedActivity | None:
    """Return what the end of a screen tells: a question before work, and work before a prompt.

    A pattern is searched in the lines without blanks at their ends, and with one blank at each end: a screen
    does not tell whether an empty prompt is `>` or `> `.
    """
    lines = [line.rstrip() for line in text.splitlines() if line.strip()][-signs.lines :]
    shown, padded = "\n".join(lines), "".join(f"{line} \n" for line in lines)
    for activity, patterns in (
        (Activity.ASKING, signs.asking),
        (Activity.ACTIVE, signs.busy),
        (Activity.IDLE, signs.idle),
    ):
        for pattern in patterns:
            if found := _compiled(pattern).search(shown) or _compiled(pattern).search(padded):
                return JudgedActivity(activity, f"its screen shows “{_in_a_line(found[0])}”")
    return None


def check_signs(signs: ScreenPatterns, source: str) -> None:
    """Invalid says what makes no sense, and where."""
    for name in ("asking", "busy", "idle"):
        for pattern in getattr(signs, name):
            _check_pattern(pattern, f"{source}: signs.{name}")
    if not 1 <= signs.lines <= MOST_LINES:
        raise Invalid(f"{source}: signs.lines is a number from 1 to {MOST_LINES}")
    for name in ("settle", "silence"):
        if not 0 <= getattr(signs, name) <= MOST_SECONDS:
            raise Invalid(f"{source}: signs.{name} is a number of seconds, at most {MOST_SECONDS:.0f}")


def check_keys(keys: TypingKeys, source: str) -> None:
    if not keys.submit or not keys.interrupt:
        raise Invalid(f"{source}: keys.submit and keys.interrupt must not be empty")
    if "{path}" not in keys.image:
        raise Invalid(f"{source}: keys.image needs a {{path}} in it")
    for name in ("echo", "pause"):
        if not 0 <= getattr(keys, name) <= MOST_PATIENCE:
            raise Invalid(f"{source}: keys.{name} is a number of seconds, at most {MOST_PATIENCE:.0f}")


def _check_pattern(pattern: str, place: str) -> None:
    try:
        matches_nothing = _compiled(pattern).search("")
    except re.error as error:
        raise Invalid(f"{place} has {pattern!r}, which is not a regular expression: {error}") from None
    if matches_nothing:
        raise Invalid(f"{place} has {pattern!r}, which is found on every screen")


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


def _in_a_line(text: str) -> str:
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(printable.split())[:WHY_LENGTH]
