"""Run a verb of the command `bullpen`, and report an error as one sentence and an exit code.

The module of a verb is imported only when the verb is used; the overview of `--help` comes from `verbs`.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from .. import __version__
from ..domain.errors import BullpenError, Invalid, Unauthorized
from .light import LightGroup
from .verbs import ALIASES, VERBS

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter
    from typer._click.shell_completion import CompletionItem

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130

_HELP = """Run coding agents and terminals, and never lose a session.

\b
Start the server:       bullpen serve
Open a terminal:        bullpen new
List sessions:          bullpen ls
Attach to a session:    bullpen attach <title or id>

Name a session or a worker by its title, its id or the beginning of either; a worker also as session/role.
"""


class Verbs(LightGroup):
    """The group of all verbs, which imports the module of a verb when it is used."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # typer suggests these after a mistyped verb.
        self.commands = {verb: TyperCommand(verb, help=line) for verb, line in VERBS.items()}

    def get_command(self, ctx: "Context", cmd_name: str) -> "Command | None":
        """Import the module of a verb and return its command; None for an unknown verb."""
        if cmd_name not in VERBS:
            return None
        module = import_module(f"{__package__}.{cmd_name}")
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write the list of verbs for `--help`."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def shell_complete(self, ctx: "Context", incomplete: str) -> "list[CompletionItem]":
        """Return the verbs that begin with a text."""
        from typer._click.shell_completion import CompletionItem  # noqa: PLC0415

        return [
            CompletionItem(verb, help=line) for verb, line in VERBS.items() if verb.startswith(incomplete)
        ]


app = typer.Typer(
    cls=Verbs,
    help=_HELP,
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def start(
    ctx: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version.")
) -> None:
    """Print the version or, without a verb, where things stand."""
    if version:
        print(f"bullpen {__version__}")
    elif ctx.invoked_subcommand is None:
        _greet(ctx)


def _greet(ctx: typer.Context) -> None:
    """Print the status on a terminal, and the help anywhere else."""
    if sys.stdout.isatty():
        from .status import greet  # noqa: PLC0415

        greet()
    else:
        print(ctx.get_help())


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Only with BULLPEN_DEBUG may an exception propagate."""
    if "_BULLPEN_COMPLETE" in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]  # noqa: PLC0415

        completion_init()
    command = typer.main.get_command(app)
    try:
        code = command.main(_replace_alias(arguments), prog_name="bullpen", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  (every error becomes one sentence)
        return explain(error)
    return code if isinstance(code, int) else 0


def _replace_alias(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with a verb that other programs use replaced by ours, after telling the user."""
    if not arguments or arguments[0] not in ALIASES:
        return list(arguments)
    alias, *rest = arguments
    verb = ALIASES[alias]
    _print_message(f"{alias} is `bullpen {verb}` here")
    return [*rest, verb] if verb.startswith("-") else [*verb.split(), *rest]


def explain(error: Exception) -> int:
    """Print the error as one sentence and return the exit code for it."""
    if os.environ.get("BULLPEN_DEBUG"):
        raise error
    match error:
        case ExceptionGroup():
            return explain(error.exceptions[0])
        case Invalid():
            _print_message(str(error))
            return WRONG_USE
        case Unauthorized() if os.environ.get("BULLPEN_TOKEN"):
            _print_message(f"{error}; unset BULLPEN_TOKEN, or set it to a token of the server")
        case BullpenError():
            _print_message(str(error))
        case typer.TyperException():
            _print_message(_usage(error))
            return error.exit_code
        case typer.Abort():
            _print_message("nothing was done")
        case OSError():
            _print_message(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        case _:
            _print_message(f"an internal error, {type(error).__name__}: {error}; BULLPEN_DEBUG=1 shows where")
    return FAILED


def _usage(error: typer.TyperException) -> str:
    """Return a sentence about a wrong command line, with the command that prints help."""
    context: Any = getattr(error, "ctx", None)
    sentence = error.format_message().rstrip(".")
    if sentence == "Missing command":
        sentence = f"{context.command_path} needs one of {', '.join(_verbs_of(context))}"
    return f"{sentence} (see: {context.command_path} --help)" if context else sentence


def _verbs_of(context: Any) -> list[str]:
    """Return the verbs that the help of a group shows."""
    group = context.command
    return [name for name in group.list_commands(context) if not group.get_command(context, name).hidden]


def _print_message(sentence: str) -> None:
    """Print a message to standard error."""
    print(f"bullpen: {sentence}", file=sys.stderr)


def _discard_output() -> None:
    """Redirect standard output to /dev/null: its reader is gone, and Python flushes it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
