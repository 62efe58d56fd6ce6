"""Fills in a form with a person: field by field, each until what is typed fits."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ..client import Question
from ..domain.errors import Invalid
from .form import FormField, check_names, content_of, fields_of
from .report import plain
from .text import paint, printable

Ask = Callable[[str], Awaitable[str]]


async def fill_in(question: Question, given: Mapping[str, str], ask: Ask) -> dict[str, Any] | None:
    """What a person answers, what was given before left as it is; None when they decline."""
    print(paint(f"{question.role} asks: {plain(question.message)}", "amber"))
    if question.url:
        print(f"  {printable(question.url)}")
    fields = fields_of(question.form)
    check_names(fields, given)
    content_of([field for field in fields if field.name in given], given)  # refused before anybody types
    if not fields and not await _agrees(ask):
        return None
    typed = {field.name: await _text(field, ask) for field in fields if field.name not in given}
    return content_of(fields, {**given, **typed})


async def _agrees(ask: Ask) -> bool:
    agreed = FormField(name="it", label="Answer it? no declines", kind="yes", required=True)
    return bool(agreed.read(await _text(agreed, ask)))


async def _text(field: FormField, ask: Ask) -> str:
    """A text the field takes; empty when it is left out."""
    for number, choice in enumerate(field.choices, 1):
        print(f"  {number}. {printable(str(choice))}")
    while True:
        text = _chosen(field, await ask(_prompt(field)))
        try:
            content_of([field], {field.name: text})
        except Invalid as error:
            print(paint(str(error), "red"))
        else:
            return text


def _chosen(field: FormField, typed: str) -> str:
    """A choice may be made by its number, unless that is itself the name of one."""
    names = [str(choice) for choice in field.choices]
    is_number = typed.isascii() and typed.isdecimal() and typed not in names
    return names[int(typed) - 1] if is_number and 1 <= int(typed) <= len(names) else typed


def _prompt(field: FormField) -> str:
    """What it is called, what it takes, and what an empty line comes to."""
    takes = "its number" if field.kind == "choice" else "" if field.kind == "text" else field.takes
    empty = "" if field.required or field.default is not None or field.kind == "yes" else "may be left empty"
    hints = ", ".join(hint for hint in (takes, empty) if hint)
    default = "" if field.default is None else f" [{printable(_shown(field.default))}]"
    return f"{printable(field.label)}{f' ({hints})' if hints else ''}{default}: "


def _shown(default: Any) -> str:
    return ("yes" if default else "no") if isinstance(default, bool) else str(default)
