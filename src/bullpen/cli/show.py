"""`bullpen show`: show one session and its workers."""

from collections.abc import Collection

import click

from ..client import Client, Session, Worker
from ..domain.reasons import end_reason_text
from .find import find_session
from .output import print_json
from .table import TableCell, TableColumn, print_table
from .text import age, display_state, home_relative, short, state_label, state_symbol, worker_state
from .unseen_changes import find_unseen
from .verb import json_option, session_argument, with_client

_DETAIL_COLUMNS = (TableColumn("", least=8), TableColumn("", least=12))
WORKER_COLUMNS = (
    TableColumn("ROLE", least=8),
    TableColumn("ID"),
    TableColumn("TYPE"),
    TableColumn("STATE", least=8),
    TableColumn("PID"),
    TableColumn("AGE"),
)


@click.command()
@session_argument
@json_option
def show(session: str, json: bool) -> None:
    """Show everything about a session.

    \b
    Examples:
      bullpen show my-session
      bullpen show my-session --json | jq .workers
    """
    found, unseen = with_client(lambda client: _fetch(client, session))
    if json:
        print_json(found)
        return
    print_table(_DETAIL_COLUMNS, _details(found, unseen))
    if found.workers:
        print()
        print_table(WORKER_COLUMNS, [worker_row(worker) for worker in found.workers])


async def _fetch(client: Client, name: str) -> tuple[Session, Collection[str]]:
    """Return a session, and the ids of workers with turns that were not seen yet."""
    session = await find_session(client, name)
    return session, await find_unseen(client) if session.active else ()


def _details(session: Session, unseen: Collection[str]) -> list[list[TableCell | str]]:
    """Return the rows of the table about a session."""
    state = display_state(session, unseen)
    symbol, colour = state_symbol(state)
    reason = f" ({end_reason_text(session.end_reason)})" if session.end_reason else ""
    state_cell = TableCell(f"{symbol} {state_label(state, session)}{reason}", colour)
    return [
        ["title", session.title],
        ["id", session.id],
        ["state", state_cell],
        ["type", session.type],
        ["directory", home_relative(session.location_path)],
        ["started", f"{age(session.created_at)} ago"],
        ["changed", f"{age(session.updated_at)} ago"],
        ["events", str(session.last_seq)],
        ["when the last viewer leaves", "ends" if session.on_last_disconnect == "terminate" else "goes on"],
    ]


def worker_row(worker: Worker) -> list[TableCell | str]:
    """Return the cells of a worker under WORKER_COLUMNS."""
    pid = str(worker.pid) if worker.pid and worker.alive else ""
    return [worker.role, short(worker.id), worker.type, worker_state(worker), pid, age(worker.created_at)]
