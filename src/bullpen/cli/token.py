"""`bullpen token`: who may come in."""

import os
import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated

import typer

from ..client import Client, Token
from ..domain.errors import Invalid
from .find import find_token
from .output import print_json
from .table import TableCell, TableColumn, print_table
from .text import age, short
from .verb import AsJson, Quiet, new_app, with_client

app = new_app("Add, list, revoke or rotate the tokens that let others in.")

TokenOnly = Annotated[bool, typer.Option("--quiet", "-q", help="Print the token only.")]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN = re.compile(r"([1-9][0-9]{0,4})([smhdw])")
_ROUNDING = timedelta(minutes=1)  # a token of 30 days has 30 days left, not 29, right after it was made
_COLUMNS = (
    TableColumn("NAME", least=8),
    TableColumn("ID"),
    TableColumn("KIND"),
    TableColumn("SCOPE"),
    TableColumn("AGE"),
    TableColumn("LAST USED"),
    TableColumn("EXPIRES"),
)


class Scope(StrEnum):
    DELEGATE = "delegate"
    VIEW = "view"
    OPERATE = "operate"
    ADMIN = "admin"


def seconds_of(text: str) -> int:
    """A span like 30d, 12h or 90s."""
    if not (span := _SPAN.fullmatch(text)):
        raise Invalid(f"--expires wants a number and one of {', '.join(_UNITS)}, like 30d, not {text}")
    return int(span[1]) * _UNITS[span[2]]


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="What it is for; shown in the list.")],
    *,
    scope: Annotated[Scope, typer.Option(help="What it may do.")] = Scope.OPERATE,
    expires: Annotated[str | None, typer.Option(metavar="SPAN", help="Dies after 12h, 30d, 8w …")] = None,
    json: AsJson = False,
    quiet: TokenOnly = False,
) -> None:
    """Make a token for a program or a person. Its text is shown this once.

    view may look, operate may also start, type and end, admin may also do this. A delegate, an agent mostly,
    may start sessions, and see and prompt those it started: give it to bullpen mcp.

    \b
    Examples:
      bullpen token add ci --expires 30d
      bullpen token add dashboard --scope view
      export BULLPEN_TOKEN=$(bullpen token add nightly -q)
    """
    expires_in = seconds_of(expires) if expires is not None else None
    made = with_client(lambda client: client.add_token(name, scope=scope.value, expires_in=expires_in))
    if json:
        print_json(made)
    elif quiet:
        print(made.token)
    else:
        end = f", expires in {expires}" if expires else ""
        print(f"made {made.name} ({made.scope}{end}); this is its token, shown only now:\n{made.token}")


@app.command("ls", hidden=True)
@app.command("list")
def list_(json: AsJson = False, quiet: Quiet = False) -> None:
    """List tokens, and browsers that logged in. The owner's own token is not among them."""
    tokens = with_client(lambda client: client.tokens())
    if json:
        print_json({"tokens": tokens})
    elif quiet:
        for token in tokens:
            print(token.id)
    elif tokens:
        print_table(_COLUMNS, [_row(token, datetime.now(UTC)) for token in tokens])
    else:
        print("no tokens but the owner's; make one with: bullpen token add <name>")


@app.command()
def revoke(
    tokens: Annotated[list[str], typer.Argument(metavar="TOKEN...", help="Names, ids or their beginnings.")],
) -> None:
    """End tokens or devices, at once and with everything they have open.

    \b
    Examples:
      bullpen token revoke ci
    """

    async def work(client: Client) -> None:
        for token in [await find_token(client, text) for text in tokens]:
            await client.revoke_token(token.id)
            print(f"revoked {token.name}")

    with_client(work)


@app.command()
def rotate(json: AsJson = False, quiet: TokenOnly = False) -> None:
    """Give the owner another token. The old one is dead at once, and so is all it has open.

    The command line on this machine finds the new one by itself, unless BULLPEN_TOKEN says otherwise.
    """
    made = with_client(lambda client: client.rotate_token())
    if json:
        print_json(made)
    elif quiet:
        print(made.token)
    else:
        print(f"the owner has another token; this is it, shown only now:\n{made.token}")
        if "BULLPEN_TOKEN" in os.environ:
            print("BULLPEN_TOKEN still says the old one here; set it anew or unset it")


def _row(token: Token, now: datetime) -> list[TableCell | str]:
    return [
        token.name,
        short(token.id),
        token.kind,
        token.scope,
        age(token.created_at, now),
        f"{age(token.last_used_at, now)} ago" if token.last_used_at else "never",
        _expiry(token, now),
    ]


def _expiry(token: Token, now: datetime) -> TableCell:
    if token.expires_at is None:
        return TableCell("never")
    if token.expires_at <= now:
        return TableCell("expired", "red")
    return TableCell(f"in {age(now, token.expires_at + _ROUNDING)}")
