"""Types of the values of options and arguments, with helpful messages for wrong ones."""

import difflib
import math
from collections.abc import Iterable
from typing import Any

import click

from ..domain.errors import Invalid

_DESCRIPTIONS = {int: "a whole number", float: "a number"}


class Number(click.ParamType[float]):
    """A number, at least `minimum` if that is given."""

    name = "number"

    def __init__(self, kind: type[int] | type[float], minimum: float | None = None) -> None:
        self._kind = kind
        self._minimum = minimum

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number in a text, or raise Invalid."""
        try:
            number = self._kind(value)
        except ValueError:
            number = math.nan
        if math.isfinite(number) and (self._minimum is None or number >= self._minimum):
            return number
        least = "" if self._minimum is None else f", {self._minimum:g} or more"
        raise Invalid(f"{_name(param)} must be {_DESCRIPTIONS[self._kind]}{least}, not {value}")


class Choice(click.Choice[str]):
    """One of several words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word, or raise Invalid."""
        if value in self.choices:
            return str(value)
        words = ", ".join(self.choices)
        raise Invalid(f"{_name(param)} must be one of {words}, not {value}{suggestion(value, self.choices)}")


def suggestion(text: str, words: Iterable[str]) -> str:
    """Return "; did you mean …?" with the most similar word, or an empty text if none is similar."""
    similar = difflib.get_close_matches(text, list(words), n=1)
    return f"; did you mean {similar[0]}?" if similar else ""


def _name(parameter: click.Parameter | None) -> str:
    """Return the name for error messages: the long form of an option, or the metavar of an argument."""
    if isinstance(parameter, click.Argument):
        return parameter.human_readable_name
    return max(parameter.opts, key=len) if parameter else "the value"
