"""Provide what verbs have in common: the typer application, shared options, and a client."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from ..client import Client
from ..domain.errors import BullpenError
from .complete import sessions as complete_session
from .light import LightApp

Result = TypeVar("Result")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print ids only.")]
Target = Annotated[
    str,
    typer.Argument(
        metavar="SESSION|WORKER", help="A title, an id, or session/role.", autocompletion=complete_session
    ),
]
SessionName = Annotated[
    str,
    typer.Argument(
        metavar="SESSION", help="A title, an id, or its beginning.", autocompletion=complete_session
    ),
]


def new_app(help: str | None = None) -> typer.Typer:
    """Return the application of one verb."""
    return LightApp(
        help=help,
        add_completion=False,
        rich_markup_mode=None,
        no_args_is_help=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def with_client(work: Callable[[Client], Awaitable[Result]]) -> Result:
    """Call `work` with a client of the server that the settings name, and return its result."""

    async def run() -> Result:
        async with Client(on_refusal=_print_refusal) as client:
            return await work(client)

    return asyncio.run(run())


def _print_refusal(refusal: BullpenError) -> None:
    """Tell the user why a request waits."""
    print(f"{refusal}. Trying again …", file=sys.stderr)
