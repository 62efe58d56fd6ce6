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


class ListingGroup(LightGroup):
    """One that lists what it has when nothing else is asked of it, if that takes no argument."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        asked = args and (not args[0].startswith("-") or args[0] in ctx.help_option_names)
        if not asked and (ls := self.commands.get("ls")) and not any(param.required for param in ls.params):
            args = ["ls", *args]
        return super().parse_args(ctx, args)


class LightApp(typer.Typer):
    """An application of such commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": ListingGroup, **settings})

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
