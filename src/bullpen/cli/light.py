"""Commands that start fast: text that was typed is taken as text.

typer imports pydantic to turn a word into a word and nothing into nothing, for every command there is.
That takes longer than everything else a command does, so what needs no check is read without it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from typer._click import Context, Parameter

_WORDS: dict[Any, Callable[[Any], Any]] = {str: str, Path: Path, list[str]: list}


class LightCommand(TyperCommand):
    """A command that leaves to typer only what has to be checked: numbers and choices."""

    def get_params(self, ctx: "Context") -> "list[Parameter]":
        return [_lightened(parameter) for parameter in super().get_params(ctx)]


class LightGroup(TyperGroup):
    """A group that does the same with its own options."""

    def get_params(self, ctx: "Context") -> "list[Parameter]":
        return [_lightened(parameter) for parameter in super().get_params(ctx)]


class LightApp(typer.Typer):
    """An application of such commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": LightGroup, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        return super().command(name, **{"cls": LightCommand, **settings})


def _lightened(parameter: "Parameter") -> "Parameter":
    """The same parameter, with a way round typer's conversion."""
    if "process_value" in vars(parameter):
        return parameter
    thorough = parameter.process_value
    descriptor: Any = vars(parameter).get("type_descriptor")
    read = _WORDS.get(descriptor.annotation) if descriptor else None

    def process_value(ctx: "Context", value: Any) -> Any:
        given = value not in (None, (), [])
        if (given and read is None) or (parameter.required and not given):
            return thorough(ctx, value)
        if given and read is not None:
            value = read(value)
        return parameter.callback(ctx, parameter, value) if parameter.callback else value

    vars(parameter)["process_value"] = process_value
    return parameter
