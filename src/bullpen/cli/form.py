"""Convert typed texts to the values of a form's fields."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..domain.forms import FormField, check_names

_YES = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}


def parse(field: FormField, text: str) -> Any:
    """Return the value of a typed text, or raise Invalid if the field does not accept it."""
    value = _convert(field, text)
    field.check(text if value is None else value)
    return value


def form_content(fields: Sequence[FormField], texts: Mapping[str, str]) -> dict[str, Any]:
    """Convert texts, by field name, to the content of the form; raise Invalid for a wrong or missing one."""
    check_names(fields, texts)
    values = {field.name: _field_value(field, texts.get(field.name)) for field in fields}
    return {name: value for name, value in values.items() if value is not None}


def _field_value(field: FormField, text: str | None) -> Any:
    """Parse a typed text; without one, return the default, or None for an optional field.

    Raise Invalid if a required field has neither.
    """
    if text:
        return parse(field, text)
    if field.default is not None:
        return field.default
    if field.required:
        raise field.missing()
    return False if field.kind == "yes" else None


def _convert(field: FormField, text: str) -> Any:
    """Return the value of the field's type that a text names; None if there is none."""
    match field.kind:
        case "choice":
            return next((choice for choice in field.choices if str(choice) == text), None)
        case "yes":
            return _YES.get(text.lower())
        case "number" | "whole":
            return _number(text, whole=field.kind == "whole")
        case _:
            return text


def _number(text: str, whole: bool) -> float | None:
    """Return the number in a text, which must be an integer if `whole`; None for any other text."""
    try:
        return int(text) if whole else _shorten_float(float(text))
    except ValueError:
        return None


def _shorten_float(number: float) -> float | None:
    """Return 3 for 3.0; None for infinity and NaN, which JSON cannot express."""
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number
