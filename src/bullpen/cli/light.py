"""Commands that start fast: what was typed is read by us, not by typer."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .values import reader

if TYPE_CHECKING:
    from typer._click import Context, Parameter


class LightCommand(TyperCommand):
    """A command whose values are read by us."""

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
    read = descriptor and reader(descriptor.annotation, _name(parameter), descriptor.parameter_info.min)

    def process_value(ctx: "Context", value: Any) -> Any:
        given = value not in (None, (), [])
        if (given and read is None) or (parameter.required and not given):
            return thorough(ctx, value)
        if given and read is not None:
            value = read(value)
        return parameter.callback(ctx, parameter, value) if parameter.callback else value

    vars(parameter)["process_value"] = process_value
    return parameter


def _name(parameter: "Parameter") -> str:
    """What a person calls it: the long form of an option, the word in the help of an argument."""
    if parameter.param_type_name == "option":
        return max(parameter.opts, key=len)
    return str(parameter.metavar or parameter.name).upper()
