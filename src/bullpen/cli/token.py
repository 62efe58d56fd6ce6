"""`bullpen token`: add, list, revoke or rotate access tokens."""

import os
import re
from datetime import UTC, datetime, timedelta

import click

from ..client import Client, Token
from ..domain.errors import Invalid
from .find import find_token
from .output import print_json
from .table import TableCell, TableColumn, print_table
from .text import age, short
from .values import Choice
from .verb import json_option, quiet_option, with_client
from .verb_group import VerbGroup

token = VerbGroup(help="Add, list, revoke or rotate access tokens.")

token_only_option = click.option("--quiet", "-q", is_flag=True, help="Print the token only.")

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION = re.compile(r"([1-9][0-9]{0,4})([smhdw])")
_ROUNDING = timedelta(minutes=1)  # a new token of 30 days shows 30 days, not 29
_COLUMNS = (
    TableColumn("NAME", least=8),
    TableColumn("ID"),
    TableColumn("KIND"),
    TableColumn("SCOPE"),
    TableColumn("AGE"),
    TableColumn("LAST USED"),
    TableColumn("EXPIRES"),
)


def parse_duration(text: str) -> int:
    """Return the seconds of a duration like 30d, 12h or 90s, or raise Invalid."""
    if not (duration := _DURATION.fullmatch(text)):
        raise Invalid(f"--expires needs a number and one of {', '.join(_UNITS)}, like 30d, not {text}")
    return int(duration[1]) * _UNITS[duration[2]]


@token.command()
@click.argument("name", help="The name of the token, shown in lists.")
@click.option(
    "--scope",
    type=Choice(["delegate", "view", "operate", "admin"]),
    default="operate",
    help="What the token allows.",
)
@click.option("--expires", metavar="SPAN", help="Expires after 12h, 30d, 8w …")
@json_option
@token_only_option
def add(name: str, scope: str, expires: str | None, json: bool, quiet: bool) -> None:
    """Create a token for a program or a person. Its text is shown only once.

    Scope view allows to read, operate also to start, type into and end sessions, admin also to manage tokens
    and settings. Scope delegate, for bullpen mcp, allows an agent to start sessions, and to read and prompt
    the sessions it started.

    \b
    Examples:
      bullpen token add ci --expires 30d
      bullpen token add dashboard --scope view
      export BULLPEN_TOKEN=$(bullpen token add nightly -q)
    """
    expires_in = parse_duration(expires) if expires is not None else None
    made = with_client(lambda client: client.add_token(name, scope=scope, expires_in=expires_in))
    if json:
        print_json(made)
    elif quiet:
        print(made.token)
    else:
        end = f", expires in {expires}" if expires else ""
        print(f"created {made.name} ({made.scope}{end}); this is its token, shown only now:\n{made.token}")


@token.command()
@json_option
@quiet_option
def ls(json: bool, quiet: bool) -> None:
    """List tokens and browsers that logged in, but not the owner's own token."""
    tokens = with_client(lambda client: client.tokens())
    if json:
        print_json({"tokens": tokens})
    elif quiet:
        for token in tokens:
            print(token.id)
    elif tokens:
        print_table(_COLUMNS, [_row(token, datetime.now(UTC)) for token in tokens])
    else:
        print("no tokens but the owner's; create one with: bullpen token add <name>")


@token.command()
@click.argument("tokens", nargs=-1, required=True, metavar="TOKEN...", help="Names, ids or their beginnings.")
def revoke(tokens: tuple[str, ...]) -> None:
    """Revoke tokens or log out devices at once, and close their connections.

    \b
    Examples:
      bullpen token revoke ci
    """

    async def work(client: Client) -> None:
        for token in [await find_token(client, text) for text in tokens]:
            await client.revoke_token(token.id)
            print(f"revoked {token.name}")

    with_client(work)


@token.command()
@json_option
@token_only_option
def rotate(json: bool, quiet: bool) -> None:
    """Replace the owner's token. The old one is invalid at once, and its connections are closed.

    The command line on this machine finds the new token, unless BULLPEN_TOKEN is set.
    """
    made = with_client(lambda client: client.rotate_token())
    if json:
        print_json(made)
    elif quiet:
        print(made.token)
    else:
        print(f"the owner's token was replaced; the new one, shown only now:\n{made.token}")
        if "BULLPEN_TOKEN" in os.environ:
            print("BULLPEN_TOKEN still has the old token here; set it to the new one or unset it")


def _row(token: Token, now: datetime) -> list[TableCell | str]:
    """Return the table row of a token."""
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
    """Return the cell that says when a token expires."""
    if token.expires_at is None:
        return TableCell("never")
    if token.expires_at <= now:
        return TableCell("expired", "red")
    return TableCell(f"in {age(now, token.expires_at + _ROUNDING)}")
