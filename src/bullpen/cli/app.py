"""The `bullpen` command: finds the verb, and turns what goes wrong into one sentence and an exit code.

A verb's module is imported when it is used; help comes from the table of verbs.
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
from .verbs import ELSEWHERE, VERBS

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter
    from typer._click.shell_completion import CompletionItem

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130

_HELP = """Run coding agents and terminals, and never lose a session.

\b
Start the server:       bullpen serve
Open a terminal:        bullpen new
See what there is:      bullpen ls
Come back to one:       bullpen attach <title or id>

Sessions and workers go by title, by id or by the beginning of one; a worker also as session/role.
"""


class Verbs(LightGroup):
    """A group whose commands are modules."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {
            verb: TyperCommand(verb, help=line) for verb, line in VERBS.items()
        }  # for near misses

    def get_command(self, ctx: "Context", cmd_name: str) -> "Command | None":
        if cmd_name not in VERBS:
            return None
        module = import_module(f"{__package__}.{cmd_name}")
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def shell_complete(self, ctx: "Context", incomplete: str) -> "list[CompletionItem]":
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
    if version:
        print(f"bullpen {__version__}")
    elif ctx.invoked_subcommand is None:
        _greet(ctx)


def _greet(ctx: typer.Context) -> None:
    """`bullpen` alone: where things stand for a person, help for a script."""
    if sys.stdout.isatty():
        from .status import greet  # noqa: PLC0415

        greet()
    else:
        print(ctx.get_help())


def run(arguments: Sequence[str]) -> int:
    """Runs one command; returns its exit code. No traceback gets past here unless BULLPEN_DEBUG is set."""
    if "_BULLPEN_COMPLETE" in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]  # noqa: PLC0415

        completion_init()
    command = typer.main.get_command(app)
    try:
        code = command.main(_in_our_words(arguments), prog_name="bullpen", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  (the last place that can say it in a sentence)
        return explain(error)
    return code if isinstance(code, int) else 0


def _in_our_words(arguments: Sequence[str]) -> list[str]:
    """What was typed, with the verb of another program replaced by the one that does it here."""
    if not arguments or arguments[0] not in ELSEWHERE:
        return list(arguments)
    theirs, *rest = arguments
    ours = ELSEWHERE[theirs]
    _say(f"{theirs} is `bullpen {ours}` here")
    return [*rest, ours] if ours.startswith("-") else [*ours.split(), *rest]


def explain(error: Exception) -> int:
    """Says what went wrong and returns the exit code for it."""
    if os.environ.get("BULLPEN_DEBUG"):
        raise error
    match error:
        case ExceptionGroup():
            return explain(error.exceptions[0])
        case Invalid():
            _say(str(error))
            return WRONG_USE
        case Unauthorized() if os.environ.get("BULLPEN_TOKEN"):
            _say(f"{error}; unset BULLPEN_TOKEN, or set it to one of the server's")
        case BullpenError():
            _say(str(error))
        case typer.TyperException():
            _say(_usage(error))
            return error.exit_code
        case typer.Abort():
            _say("nothing was done")
        case OSError():
            _say(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        case _:
            _say(f"an internal error, {type(error).__name__}: {error}; BULLPEN_DEBUG=1 shows where")
    return FAILED


def _usage(error: typer.TyperException) -> str:
    context: Any = getattr(error, "ctx", None)
    sentence = error.format_message().rstrip(".")
    if sentence == "Missing command":
        sentence = f"{context.command_path} wants one of {', '.join(_verbs_of(context))}"
    return f"{sentence} (see: {context.command_path} --help)" if context else sentence


def _verbs_of(context: Any) -> list[str]:
    """What its help shows, too."""
    group = context.command
    return [name for name in group.list_commands(context) if not group.get_command(context, name).hidden]


def _say(sentence: str) -> None:
    print(f"bullpen: {sentence}", file=sys.stderr)


def _forget_output() -> None:
    """The reader is gone; Python must not try to flush to it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
