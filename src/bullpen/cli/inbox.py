"""`bullpen inbox`: what waits for a person, over all sessions, and the answers to it."""

import sys
from typing import Annotated

import typer

from ..client import Client, InboxItem
from ..domain.errors import Conflict, NotFound
from ..domain.reasons import stop_reason_text
from .approve import choose, what
from .output import print_json
from .table import TableCell, TableColumn, print_table
from .text import ID_LENGTH, age, paint, short
from .verb import AsJson, new_app, with_client

app = new_app()

_COLUMNS = (
    TableColumn("KIND"),
    TableColumn("ID"),
    TableColumn("SESSION", least=10),
    TableColumn("ROLE", least=6),
    TableColumn("AGE"),
    TableColumn("WHAT", least=12),
)
_COLOURS = {"failed": "red", "finished": "blue"}
_HOW = {  # what a person does about it
    "permission": ("allow or refuse:", "bullpen inbox --allow ID, or --deny ID"),
    "question": ("answer it with:", "bullpen answer SESSION"),
    "asking": ("answer it there:", "bullpen attach SESSION"),
    "failed": ("take off the list:", "bullpen inbox --seen ID"),
    "finished": ("take off the list:", "bullpen inbox --seen ID"),
}


@app.command()
def inbox(
    allow: Annotated[str | None, typer.Option(metavar="ID", help="Allow what is asked.")] = None,
    deny: Annotated[str | None, typer.Option(metavar="ID", help="Refuse what is asked.")] = None,
    seen: Annotated[str | None, typer.Option(metavar="ID", help="You know: take it off the list.")] = None,
    json: AsJson = False,
) -> None:
    """See what waits for you, over all sessions, and answer it.

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
    """The one whose id, as it is shown or whole, begins so."""
    exact = [item for item in items if text in (item.id, short_id(item))]
    found = exact or [item for item in items if item.id.startswith(text) or short_id(item).startswith(text)]
    if len(found) > 1:
        raise Conflict(f"{len(found)} things begin with {text}; give more of the id")
    if not found:
        raise NotFound(f"nothing that waits is called {text}; see: bullpen inbox")
    return found[0]


def short_id(item: InboxItem) -> str:
    """The id with only the beginning of its long part."""
    first, dot, rest = item.id.partition(".")
    return f"{first[:ID_LENGTH]}{dot}{rest}"


async def _answer(client: Client, item: InboxItem, kind: str) -> None:
    if item.kind != "permission":
        what, how = _HOW.get(item.kind, _HOW["finished"])
        how = how.replace("SESSION", short(item.session_id)).replace("ID", short_id(item))
        raise Conflict(f"{short_id(item)} is not a permission; {what} {how}")
    await client.answer_permission(item.session_id, item.id, choose(item.options, kind, None))


async def _mark_seen(client: Client, item: InboxItem) -> None:
    if item.seq is None:
        raise Conflict(f"{short_id(item)} waits for an answer; to have seen it is not enough")
    await client.mark_seen(item.session_id, item.seq)


def _row(item: InboxItem) -> list[TableCell | str]:
    kind = TableCell(item.kind, _COLOURS.get(item.kind, "amber"))
    return [
        kind,
        short_id(item),
        item.session_title,
        item.role,
        age(item.created_at),
        what(item.tool_call) if item.tool_call else _happened(item),
    ]


def _hints(items: list[InboxItem]) -> list[str]:
    """What a person does about what is listed."""
    kinds = {item.kind for item in items}
    told = dict.fromkeys(_HOW[kind] for kind in _HOW if kind in kinds)
    return [f"{what:<18} {how}" for what, how in told]


def _happened(item: InboxItem) -> str:
    """How a turn ended is a word of the protocol; everything else is a sentence already."""
    return stop_reason_text(item.text) if item.kind == "finished" else item.text
