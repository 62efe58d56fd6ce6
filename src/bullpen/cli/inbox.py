"""`bullpen inbox`: list what waits for the user in all sessions, and answer it."""

import sys

import click

from ..client import Client, InboxItem
from ..domain.errors import Conflict, NotFound
from ..domain.reasons import stop_reason_text
from .approve import choose, describe_call
from .output import print_json
from .table import TableCell, TableColumn, print_table
from .text import ID_LENGTH, age, paint, short
from .verb import json_option, with_client

_COLUMNS = (
    TableColumn("KIND"),
    TableColumn("ID"),
    TableColumn("SESSION", least=10),
    TableColumn("ROLE", least=6),
    TableColumn("AGE"),
    TableColumn("WHAT", least=12),
)
_COLOURS = {"failed": "red", "finished": "blue"}
_ADVICE = {  # by kind of item: a label and the command
    "permission": ("allow or refuse:", "bullpen inbox --allow ID, or --deny ID"),
    "question": ("answer it with:", "bullpen answer SESSION"),
    "asking": ("answer it there:", "bullpen attach SESSION"),
    "refused": ("allow it with:", "bullpen sandbox allow HOST, or allow PATH; else --seen ID"),
    "failed": ("take off the list:", "bullpen inbox --seen ID"),
    "finished": ("take off the list:", "bullpen inbox --seen ID"),
}


@click.command()
@click.option("--allow", metavar="ID", help="Allow this request.")
@click.option("--deny", metavar="ID", help="Refuse this request.")
@click.option("--seen", metavar="ID", help="Take this item off the list.")
@json_option
def inbox(allow: str | None, deny: str | None, seen: str | None, json: bool) -> None:
    """List what waits for you in all sessions, and answer it.

    \b
    Examples:
      bullpen inbox
      bullpen inbox --allow 9b7e2c44.1.4096
      bullpen inbox --seen 4c0f1f0e.12
    """

    async def work(client: Client) -> list[InboxItem]:
        items = await client.inbox()
        for text, kind in ((allow, "allow_once"), (deny, "reject_once")):
            if text is not None:
                await _answer(client, find_item(items, text), kind)
        if seen is not None:
            await _mark_seen(client, find_item(items, seen))
        return await client.inbox() if allow or deny or seen else items

    items = with_client(work)
    if json:
        print_json({"items": items})
    elif items:
        print_table(_COLUMNS, [_row(item) for item in items])
        if sys.stdout.isatty():
            print("", *(paint(hint, "grey") for hint in _hints(items)), sep="\n")
    else:
        print("nothing waits for you")


def find_item(items: list[InboxItem], text: str) -> InboxItem:
    """Return the item whose full or listed id begins with a text; raise Conflict if several do."""
    exact = [item for item in items if text in (item.id, short_id(item))]
    found = exact or [item for item in items if item.id.startswith(text) or short_id(item).startswith(text)]
    if len(found) > 1:
        raise Conflict(f"{len(found)} items begin with {text}; give more of the id")
    if not found:
        raise NotFound(f"there is no item {text} in the inbox; see: bullpen inbox")
    return found[0]


def short_id(item: InboxItem) -> str:
    """Return the id of an item as lists show it, with only the beginning of its long part."""
    first, dot, rest = item.id.partition(".")
    return f"{first[:ID_LENGTH]}{dot}{rest}"


async def _answer(client: Client, item: InboxItem, kind: str) -> None:
    """Answer a permission with the option of a kind; raise Conflict for any other item."""
    if item.kind != "permission":
        label, command = _ADVICE.get(item.kind, _ADVICE["finished"])
        command = command.replace("SESSION", short(item.session_id)).replace("ID", short_id(item))
        raise Conflict(f"{short_id(item)} is not a permission; {label} {command}")
    await client.answer_permission(item.session_id, item.id, choose(item.options, kind, None))


async def _mark_seen(client: Client, item: InboxItem) -> None:
    """Take a failure or a finished turn off the list; raise Conflict for an item that waits for an answer."""
    if item.seq is None:
        raise Conflict(f"{short_id(item)} waits for an answer; --seen does not answer it")
    await client.mark_seen(item.session_id, item.seq)


def _row(item: InboxItem) -> list[TableCell | str]:
    """Return the table row of an item."""
    kind = TableCell(item.kind, _COLOURS.get(item.kind, "amber"))
    return [
        kind,
        short_id(item),
        item.session_title,
        item.role,
        age(item.created_at),
        describe_call(item.tool_call) if item.tool_call else _text(item),
    ]


def _hints(items: list[InboxItem]) -> list[str]:
    """Return one line of advice for each kind of listed item."""
    kinds = {item.kind for item in items}
    advice = dict.fromkeys(_ADVICE[kind] for kind in _ADVICE if kind in kinds)
    return [f"{label:<18} {command}" for label, command in advice]


def _text(item: InboxItem) -> str:
    """Return the text of an item; the stop reason of a turn is converted to readable words."""
    return stop_reason_text(item.text) if item.kind == "finished" else item.text
