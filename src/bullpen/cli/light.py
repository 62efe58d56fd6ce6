"""Define typer commands that start fast because they convert argument values without typer's converters."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .values import find_converter

if TYPE_CHECKING:
    from typer._click import Context, Parameter


class LightCommand(TyperCommand):
    """A command that converts its values with the module `values`."""

    def get_params(self, ctx: "Context") -> "list[Parameter]":
        """Return the parameters of the command, without typer's conversion."""
        return [_bypass_typer(parameter) for parameter in super().get_params(ctx)]


class LightGroup(TyperGroup):
    """A group that converts its own options with the module `values`."""

    def get_params(self, ctx: "Context") -> "list[Parameter]":
        """Return the parameters of the group, without typer's conversion."""
        return [_bypass_typer(parameter) for parameter in super().get_params(ctx)]


class ListingGroup(LightGroup):
    """A group that runs its verb `ls` if no verb is given, and `ls` needs no argument."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Insert the verb `ls` if no verb is given."""
        has_verb = args and (not args[0].startswith("-") or args[0] in ctx.help_option_names)
        if (
            not has_verb
            and (ls := self.commands.get("ls"))
            and not any(param.required for param in ls.params)
        ):
            args = ["ls", *args]
        return super().parse_args(ctx, args)


class LightApp(typer.Typer):
    """A typer application whose commands and groups are those of this module."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": ListingGroup, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Return the decorator that adds a LightCommand."""
        return super().command(name, **{"cls": LightCommand, **settings})


def _bypass_typer(parameter: "Parameter") -> "Parameter":
    """Return the parameter after replacing typer's conversion of its values."""
    if "process_value" in vars(parameter):
        return parameter
    convert_with_typer = parameter.process_value
    descriptor: Any = vars(parameter).get("type_descriptor")
    convert = descriptor and find_converter(
        descriptor.annotation, _name(parameter), descriptor.parameter_info.min
    )

    def process_value(ctx: "Context", value: Any) -> Any:
        given = value not in (None, (), [])
        if (given and convert is None) or (parameter.required and not given):
            return convert_with_typer(ctx, value)
        if given and convert is not None:
            value = convert(value)
        return parameter.callback(ctx, parameter, value) if parameter.callback else value

    vars(parameter)["process_value"] = process_value
    return parameter


def _name(parameter: "Parameter") -> str:
    """Return the name for error messages: the long form of an option, or the metavar of an argument."""
    if parameter.param_type_name == "option":
        return max(parameter.opts, key=len)
    return str(parameter.metavar or parameter.name).upper()
