"""What every verb is made with: its typer application, options many verbs have, a client to work with."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from ..client import Client
from ..domain.errors import BullpenError
from .complete import sessions
from .light import LightApp

Result = TypeVar("Result")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print ids only.")]
Target = Annotated[
    str,
    typer.Argument(
        metavar="SESSION|WORKER", help="A title, an id, or session/role.", autocompletion=sessions
    ),
]
SessionName = Annotated[
    str,
    typer.Argument(metavar="SESSION", help="A title, an id, or its beginning.", autocompletion=sessions),
]


def new_app(help: str | None = None) -> typer.Typer:
    return LightApp(
        help=help,
        add_completion=False,
        rich_markup_mode=None,
        no_args_is_help=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def with_client(work: Callable[[Client], Awaitable[Result]]) -> Result:
    """Runs work with a client of the server the settings say."""

    async def run() -> Result:
        async with Client(on_refusal=_say_that_it_waits) as client:
            return await work(client)

    return asyncio.run(run())


def _say_that_it_waits(refusal: BullpenError) -> None:
    print(f"{refusal}. Trying again …", file=sys.stderr)
