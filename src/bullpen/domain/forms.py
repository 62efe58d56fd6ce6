"""Read the fields of a question's form from its JSON schema, and check an answer against them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from .errors import Invalid

MAX_SHOWN = 100  # characters of a name or a value in a message
MAX_BOUND = 1 << 53  # larger numbers are not exact in JavaScript

_KINDS = {"string": "text", "boolean": "yes", "integer": "whole", "number": "number"}
_BOUNDS = {
    "text": ("minLength", "maxLength"),
    "whole": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
}


class FormField(Struct, frozen=True, kw_only=True):
    """One field of a form. A field of an unknown type accepts any value: the agent checks it."""

    name: str
    label: str
    kind: str  # text, number, whole, yes, choice or any
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
                return f"one of {', '.join(_shown(choice) for choice in self.choices)}"
            case "yes":
                return "yes or no"
            case "number" | "whole":
                return f"{'a whole number' if self.kind == 'whole' else 'a number'}{self._range('')}"
            case _:
                return f"text{self._range(' letters')}"

    def accepts(self, value: Any) -> bool:
        """Tell whether a value of JSON is an answer to the field. Patterns and formats are not checked."""
        match self.kind:
            case "choice":
                return any(_equal(choice, value) for choice in self.choices)
            case "yes":
                return isinstance(value, bool)
            case "number" | "whole":
                return _is_number(value, whole=self.kind == "whole") and self._allows(value)
            case "text":
                return isinstance(value, str) and self._allows(len(value))
        return True

    def check(self, value: Any) -> None:
        """Raise Invalid if the field does not accept the value."""
        if not self.accepts(value):
            raise Invalid(f"{_shown(self.name)} must be {self.expected}, not {_shown(value) or 'empty'}")

    def missing(self) -> Invalid:
        """Return the error for a required field without a value."""
        hint = "" if self.expected == "text" else f": {self.expected}"
        return Invalid(f"{_shown(self.name)} must be filled in{hint}")

    def _range(self, unit: str) -> str:
        """Return the bounds as text for a message; empty if only a minimum length of 1 is required."""
        shows_minimum = self.minimum is not None and not (unit and self.minimum <= 1)
        minimum = f", {self.minimum:.16g}{unit} or more" if shows_minimum else ""
        return minimum + ("" if self.maximum is None else f", {self.maximum:.16g}{unit} or less")

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


def check_answer(schema: Any, content: Mapping[str, Any]) -> None:
    """Raise Invalid for the first field whose value is wrong, missing or unknown.

    A question whose schema has no fields accepts any content.
    """
    fields = form_fields(schema)
    if not fields:
        return
    check_names(fields, content)
    for field in fields:
        if field.name in content:
            field.check(content[field.name])
        elif field.required:
            raise field.missing()


def check_names(fields: Sequence[FormField], names: Iterable[str]) -> None:
    """Raise Invalid if a name is not that of a field."""
    known = [field.name for field in fields]
    for name in names:
        if name not in known:
            listed = ", ".join(map(_shown, known)) or "none"
            raise Invalid(f"the form has no field {_shown(name)}; its fields: {listed}")


def _field(name: str, schema: dict[str, Any], required: bool) -> FormField:
    """Return the field that a property of the schema describes."""
    kind = "choice" if isinstance(schema.get("enum"), list) else _KINDS.get(str(schema.get("type")), "any")
    minimum, maximum = _BOUNDS.get(kind, ("", ""))
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


def _bound(value: Any) -> float | None:
    """Return a bound of the schema if it is a number that can be compared exactly, else None."""
    return value if _is_number(value) and abs(value) <= MAX_BOUND else None


def _is_number(value: Any, *, whole: bool = False) -> bool:
    """Return whether a value is a number of JSON; `whole`: an integer such as 3 or 3.0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return not whole or isinstance(value, int) or value.is_integer()


def _equal(one: Any, other: Any) -> bool:
    """Return whether two texts, numbers or booleans are equal in JSON, where `true` is not 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _shown(value: Any) -> str:
    """Return a value as a short line without control characters."""
    text = value if isinstance(value, str) else json.dumps(value)
    line = "".join(character if character.isprintable() else "�" for character in text[: MAX_SHOWN + 1])
    return line if len(line) <= MAX_SHOWN else f"{line[:MAX_SHOWN]}…"
