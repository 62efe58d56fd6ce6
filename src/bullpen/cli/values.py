"""Convert the arguments of the command line to values, with helpful messages for wrong ones.

typer imports pydantic for this, which takes longer than everything else a command does.
"""

import difflib
import math
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

from ..domain.errors import Invalid

Converter = Callable[[Any], Any]

_CONVERTERS: dict[Any, Converter] = {str: str, Path: Path, list[str]: list}
_NUMBERS = {int: "a whole number", float: "a number"}


def find_converter(annotation: Any, name: str, minimum: float | None = None) -> Converter | None:
    """Return the function that converts a text to a type; None for a type that only typer can convert.

    `name` is the option or argument for error messages.
    """
    if annotation in _NUMBERS:
        return lambda text: _parse_number(annotation, name, minimum, text)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return lambda text: _parse_choice(annotation, name, text)
    return _CONVERTERS.get(annotation)


def _parse_number(kind: type[int] | type[float], name: str, minimum: float | None, text: Any) -> float:
    """Return the number in a text, or raise Invalid."""
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value) and (minimum is None or value >= minimum):
        return value
    range_ = "" if minimum is None else f", {minimum:g} or more"
    raise Invalid(f"{name} must be {_NUMBERS[kind]}{range_}, not {text}")


def _parse_choice(choices: type[Enum], name: str, text: Any) -> Enum:
    """Return the member of an enumeration with a value, or raise Invalid."""
    try:
        return choices(text)
    except ValueError:
        words = [str(choice.value) for choice in choices]
        raise Invalid(
            f"{name} must be one of {', '.join(words)}, not {text}{suggestion(text, words)}"
        ) from None


def suggestion(text: str, words: list[str]) -> str:
    """Return "; did you mean …?" with the most similar word, or an empty text if none is similar."""
    similar = difflib.get_close_matches(text, words, n=1)
    return f"; did you mean {similar[0]}?" if similar else ""
