"""How a word somebody typed becomes a value, or a sentence that says what is accepted.

typer imports pydantic for this, which takes longer than everything else a command does.
"""

import difflib
import math
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

from ..domain.errors import Invalid

Read = Callable[[Any], Any]

_WORDS: dict[Any, Read] = {str: str, Path: Path, list[str]: list}
_NUMBERS = {int: "a whole number", float: "a number"}


def reader(annotation: Any, name: str, least: float | None = None) -> Read | None:
    """What turns text into a value of this type; None for a type no command has. `name` is for mistakes."""
    if annotation in _NUMBERS:
        return lambda text: _number(annotation, name, least, text)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return lambda text: _one_of(annotation, name, text)
    return _WORDS.get(annotation)


def _number(kind: type[int] | type[float], name: str, least: float | None, text: Any) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value) and (least is None or value >= least):
        return value
    range_ = "" if least is None else f", {least:g} or more"
    raise Invalid(f"{name} must be {_NUMBERS[kind]}{range_}, not {text}")


def _one_of(choices: type[Enum], name: str, text: Any) -> Enum:
    try:
        return choices(text)
    except ValueError:
        words = [str(choice.value) for choice in choices]
        raise Invalid(f"{name} must be one of {', '.join(words)}, not {text}{nearest(text, words)}") from None


def nearest(text: str, words: list[str]) -> str:
    """What was perhaps meant, as the end of a sentence; nothing when nothing is near."""
    near = difflib.get_close_matches(text, words, n=1)
    return f"; did you mean {near[0]}?" if near else ""
