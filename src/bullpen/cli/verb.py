"""Provide what verbs have in common: options, arguments, and a client."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from ..client import Client
from ..domain.errors import BullpenError
from .complete import complete_session

Result = TypeVar("Result")

json_option = click.option("--json", is_flag=True, help="Print JSON, for scripts.")
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Print ids only.")
target_argument = click.argument(
    "target",
    metavar="SESSION|WORKER",
    help="A title, an id, or session/role.",
    shell_complete=complete_session,
)
session_argument = click.argument(
    "session",
    metavar="SESSION",
    help="A title, an id, or its beginning.",
    shell_complete=complete_session,
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
