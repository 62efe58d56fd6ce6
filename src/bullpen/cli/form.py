"""The fields of a form an agent asks to be filled in, and what of a typed text each of them takes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..domain.errors import Invalid
from .text import printable

_YES = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}


class FormField(Struct, frozen=True, kw_only=True):
    """One property of the schema. A kind nobody knows is plain text: the agent says if that will not do."""

    name: str
    label: str
    kind: str  # text, number, whole, yes or choice
    required: bool
    choices: Sequence[Any] = ()
    default: Any = None
    least: float | None = None
    most: float | None = None

    @property
    def takes(self) -> str:
        """What it takes, in words."""
        match self.kind:
            case "choice":
                return f"one of {', '.join(printable(str(choice)) for choice in self.choices)}"
            case "yes":
                return "yes or no"
            case "number" | "whole":
                return f"{'a whole number' if self.kind == 'whole' else 'a number'}{self._range}"
            case _:
                return f"text{self._length}"

    def read(self, text: str) -> Any:
        """The value a text stands for."""
        value = self._value(text)
        if value is None:
            raise Invalid(f"{printable(self.name)} must be {self.takes}, not {printable(text)}")
        return value

    @property
    def _range(self) -> str:
        least = "" if self.least is None else f", {self.least:g} or more"
        return least + ("" if self.most is None else f", {self.most:g} or less")

    @property
    def _length(self) -> str:
        least = f", {self.least:g} letters or more" if self.least and self.least > 1 else ""
        return least + ("" if self.most is None else f", {self.most:g} letters or less")

    def _value(self, text: str) -> Any:
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
        return (self.least is None or size >= self.least) and (self.most is None or size <= self.most)


def fields_of(schema: Any) -> list[FormField]:
    """In the order of the schema; none when it is no schema of a form."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return []
    required = schema.get("required")
    wanted = required if isinstance(required, list) else []
    return [
        _field(name, each if isinstance(each, dict) else {}, name in wanted)
        for name, each in properties.items()
    ]


def check_names(fields: Sequence[FormField], given: Iterable[str]) -> None:
    names = [field.name for field in fields]
    for name in given:
        if name not in names:
            there = ", ".join(map(printable, names)) or "none"
            raise Invalid(f"the form has no field {name}; its fields: {there}")


def content_of(fields: Sequence[FormField], given: Mapping[str, str]) -> dict[str, Any]:
    """What is sent for what was given by name, with the types of the schema."""
    check_names(fields, given)
    values = {field.name: _filled(field, given.get(field.name)) for field in fields}
    return {name: value for name, value in values.items() if value is not None}


def _filled(field: FormField, text: str | None) -> Any:
    if text:
        return field.read(text)
    if field.default is not None:
        return field.default
    if field.required:
        takes = "" if field.takes == "text" else f": {field.takes}"
        raise Invalid(f"{printable(field.name)} must be filled in{takes}")
    return False if field.kind == "yes" else None


def _field(name: str, schema: dict[str, Any], required: bool) -> FormField:
    kind = _kind(schema)
    least, most = ("minLength", "maxLength") if kind == "text" else ("minimum", "maximum")
    title = schema.get("title")
    return FormField(
        name=name,
        label=title if isinstance(title, str) and title else name,
        kind=kind,
        required=required,
        choices=schema["enum"] if kind == "choice" else (),
        default=schema.get("default"),
        least=_bound(schema.get(least)),
        most=_bound(schema.get(most)),
    )


def _kind(schema: dict[str, Any]) -> str:
    if isinstance(schema.get("enum"), list):
        return "choice"
    return {"boolean": "yes", "integer": "whole", "number": "number"}.get(str(schema.get("type")), "text")


def _bound(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _number(text: str, whole: bool) -> float | None:
    try:
        return int(text) if whole else _plain(float(text))
    except ValueError:
        return None


def _plain(number: float) -> float | None:
    """3 and not 3.0; JSON knows no number that is none."""
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number
