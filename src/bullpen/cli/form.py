"""Parse the form of a question, and convert typed texts to the values of its fields."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..domain.errors import Invalid
from .text import printable

_YES = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}


class FormField(Struct, frozen=True, kw_only=True):
    """One field of a form. A field of an unknown kind accepts any text."""

    name: str
    label: str
    kind: str  # text, number, whole, yes or choice
    required: bool
    choices: Sequence[Any] = ()
    default: Any = None
    minimum: float | None = None  # of a number, or of the length of a text
    maximum: float | None = None

    @property
    def expected(self) -> str:
        """The values that the field accepts, for a prompt or an error message."""
        match self.kind:
            case "choice":
                return f"one of {', '.join(printable(str(choice)) for choice in self.choices)}"
            case "yes":
                return "yes or no"
            case "number" | "whole":
                return f"{'a whole number' if self.kind == 'whole' else 'a number'}{self._range}"
            case _:
                return f"text{self._length}"

    def parse(self, text: str) -> Any:
        """Return the value of a text, or raise Invalid."""
        value = self._parse(text)
        if value is None:
            raise Invalid(f"{printable(self.name)} must be {self.expected}, not {printable(text)}")
        return value

    @property
    def _range(self) -> str:
        """The allowed range of a number, for a message."""
        minimum = "" if self.minimum is None else f", {self.minimum:g} or more"
        return minimum + ("" if self.maximum is None else f", {self.maximum:g} or less")

    @property
    def _length(self) -> str:
        """The allowed length of a text, for a message."""
        minimum = f", {self.minimum:g} letters or more" if self.minimum and self.minimum > 1 else ""
        return minimum + ("" if self.maximum is None else f", {self.maximum:g} letters or less")

    def _parse(self, text: str) -> Any:
        """Return the value of a text; None if the field does not accept it."""
        match self.kind:
            case "choice":
                return next((choice for choice in self.choices if str(choice) == text), None)
            case "yes":
                return _YES.get(text.lower())
            case "number" | "whole":
                number = _number(text, whole=self.kind == "whole")
                return number if number is not None and self._allows(number) else None
            case _:
                return text if self._allows(len(text)) else None

    def _allows(self, size: float) -> bool:
        """Return whether a number, or the length of a text, is within the bounds."""
        return (self.minimum is None or size >= self.minimum) and (
            self.maximum is None or size <= self.maximum
        )


def form_fields(schema: Any) -> list[FormField]:
    """Return the fields of a form's JSON schema, in its order; none if it is not such a schema."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return []
    required = schema.get("required")
    required_names = required if isinstance(required, list) else []
    return [
        _field(name, each if isinstance(each, dict) else {}, name in required_names)
        for name, each in properties.items()
    ]


def check_names(fields: Sequence[FormField], names: Iterable[str]) -> None:
    """Raise Invalid if a name is not that of a field."""
    known = [field.name for field in fields]
    for name in names:
        if name not in known:
            listed = ", ".join(map(printable, known)) or "none"
            raise Invalid(f"the form has no field {name}; its fields: {listed}")


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
        return field.parse(text)
    if field.default is not None:
        return field.default
    if field.required:
        hint = "" if field.expected == "text" else f": {field.expected}"
        raise Invalid(f"{printable(field.name)} must be filled in{hint}")
    return False if field.kind == "yes" else None


def _field(name: str, schema: dict[str, Any], required: bool) -> FormField:
    """Return the field that a property of the schema describes."""
    kind = _kind(schema)
    minimum, maximum = ("minLength", "maxLength") if kind == "text" else ("minimum", "maximum")
    title = schema.get("title")
    return FormField(
        name=name,
        label=title if isinstance(title, str) and title else name,
        kind=kind,
        required=required,
        choices=schema["enum"] if kind == "choice" else (),
        default=schema.get("default"),
        minimum=_bound(schema.get(minimum)),
        maximum=_bound(schema.get(maximum)),
    )


def _kind(schema: dict[str, Any]) -> str:
    """Return the kind of the field that a schema describes."""
    if isinstance(schema.get("enum"), list):
        return "choice"
    return {"boolean": "yes", "integer": "whole", "number": "number"}.get(str(schema.get("type")), "text")


def _bound(value: Any) -> float | None:
    """Return a bound of the schema if it is a number."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _number(text: str, whole: bool) -> float | None:
    """Return the number in a text, or None."""
    try:
        return int(text) if whole else _shorten_float(float(text))
    except ValueError:
        return None


def _shorten_float(number: float) -> float | None:
    """Return 3 for 3.0; None for infinity and NaN, which JSON cannot express."""
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number
