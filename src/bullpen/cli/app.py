"""Run a verb of the command `bullpen`, and report an error as one sentence and an exit code.

The module of a verb is imported only when the verb is used; the overview of `--help` comes from `verbs`.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

from .. import __version__
from ..domain.errors import BullpenError, Invalid, Unauthorized
from .verb_group import VerbGroup
from .verbs import ALIASES, VERBS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130


class Verbs(VerbGroup):
    """The group of all verbs, which imports the module of a verb when it is used."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a verb and return its command; None for an unknown verb."""
        listed = super().get_command(ctx, cmd_name)
        if listed is None or listed.name is None:
            return None
        module = import_module(f"{__package__}.{listed.name}")
        command: click.Command = getattr(module, listed.name, None) or getattr(module, f"{listed.name}_")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs for `--help`."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem[str]]":
        """Return the verbs that begin with a text."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415

        return [
            CompletionItem(verb, help=line) for verb, line in VERBS.items() if verb.startswith(incomplete)
        ]


@click.command(
    cls=Verbs,
    commands=[click.Command(verb) for verb in VERBS],
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.option("--version", is_flag=True, help="Print the version.")
@click.pass_context
def app(ctx: click.Context, version: bool) -> None:
    """Run coding agents and terminals, and never lose a session.

    \b
    Start the server:       bullpen serve
    Open a terminal:        bullpen new
    List sessions:          bullpen ls
    Attach to a session:    bullpen attach <title or id>

    Name a session or a worker by its title, its id or the beginning of either; a worker also as session/role.
    """
    if version:
        print(f"bullpen {__version__}")
    elif ctx.invoked_subcommand is None:
        _greet(ctx)


def _greet(ctx: click.Context) -> None:
    """Print the status on a terminal, and the help anywhere else."""
    if sys.stdout.isatty():
        from .status import greet  # noqa: PLC0415

        greet()
    else:
        print(ctx.get_help())


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Only with BULLPEN_DEBUG may an exception propagate."""
    if instruction := os.environ.get("_BULLPEN_COMPLETE"):
        from click.shell_completion import shell_complete  # noqa: PLC0415

        return shell_complete(app, {}, "bullpen", "_BULLPEN_COMPLETE", instruction)
    try:
        with app.make_context("bullpen", _replace_alias(arguments)) as context:
            code = app.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        _discard_output()
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  (every error becomes one sentence)
        return explain(error)
    return code if isinstance(code, int) else 0


def _replace_alias(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with a verb of other programs replaced by Bullpen's; print which verb that is."""
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
        case click.UsageError():
            _print_message(_usage(error))
            return WRONG_USE
        case click.Abort():
            _print_message("nothing was done")
        case OSError():
            _print_message(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        case _:
            _print_message(f"an internal error, {type(error).__name__}: {error}; BULLPEN_DEBUG=1 shows where")
    return FAILED


def _usage(error: click.UsageError) -> str:
    """Return a sentence about a wrong command line, with the command that prints help."""
    sentence = error.format_message().rstrip(".")
    if error.ctx is None:
        return sentence
    command, path = error.ctx.command, error.ctx.command_path
    if isinstance(command, click.Group) and isinstance(error, click.exceptions.NoArgsIsHelpError):
        sentence = f"{path} needs one of {', '.join(command.list_commands(error.ctx))}"
    return f"{sentence} (see: {path} --help)"


def _print_message(sentence: str) -> None:
    """Print a message to standard error."""
    print(f"bullpen: {sentence}", file=sys.stderr)


def _discard_output() -> None:
    """Redirect standard output to /dev/null: its reader is gone, and Python flushes it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
