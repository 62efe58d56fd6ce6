"""Ask the user for the values of a form, field by field, until each is valid."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ..client import Question
from ..domain.errors import Invalid
from ..domain.forms import FormField, check_names, form_fields
from .form import form_content, parse
from .text import paint, printable, printable_lines

AskUser = Callable[[str], Awaitable[str]]


async def fill_in(question: Question, values: Mapping[str, str], ask: AskUser) -> dict[str, Any] | None:
    """Return the content of the form, asking for the fields without a value; None if the user declines."""
    print(paint(f"{question.role} asks: {printable_lines(question.message)}", "amber"))
    if question.url:
        print(f"  {printable(question.url)}")
    fields = form_fields(question.form)
    check_names(fields, values)
    form_content([field for field in fields if field.name in values], values)  # refuse before asking the user
    if not fields and not await _accepts(ask):
        return None
    typed = {field.name: await _ask_text(field, ask) for field in fields if field.name not in values}
    return form_content(fields, {**values, **typed})


async def _accepts(ask: AskUser) -> bool:
    """Ask the user whether to accept a question that has no fields."""
    field = FormField(name="answer", label="Accept? no declines", kind="yes", required=True)
    return bool(parse(field, await _ask_text(field, ask)))


async def _ask_text(field: FormField, ask: AskUser) -> str:
    """Ask until the user types a valid text for a field, and return it; empty for no value."""
    for number, choice in enumerate(field.choices, 1):
        print(f"  {number}. {printable(str(choice))}")
    while True:
        text = _resolve_choice(field, await ask(_prompt(field)))
        try:
            form_content([field], {field.name: text})
        except Invalid as error:
            print(paint(str(error), "red"))
        else:
            return text


def _resolve_choice(field: FormField, typed: str) -> str:
    """Return the choice with a typed number, unless the number is itself a choice; else the text."""
    names = [str(choice) for choice in field.choices]
    is_number = typed.isascii() and typed.isdecimal() and typed not in names
    return names[int(typed) - 1] if is_number and 1 <= int(typed) <= len(names) else typed


def _prompt(field: FormField) -> str:
    """Return the prompt of a field: its label, what it expects, and its default."""
    expected = "its number" if field.kind == "choice" else "" if field.kind == "text" else field.expected
    empty = "" if field.required or field.default is not None or field.kind == "yes" else "may be left empty"
    hints = ", ".join(hint for hint in (expected, empty) if hint)
    default = "" if field.default is None else f" [{printable(_format_default(field.default))}]"
    return f"{printable(field.label)}{f' ({hints})' if hints else ''}{default}: "


def _format_default(default: Any) -> str:
    """Return a default value as the user would type it."""
    return ("yes" if default else "no") if isinstance(default, bool) else str(default)
