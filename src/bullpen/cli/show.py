"""`bullpen show`: show one session and its workers."""

import click

from ..client import Session, Worker
from ..domain.reasons import end_reason_text
from .find import find_session
from .output import print_json
from .table import TableCell, TableColumn, path_column, print_table
from .text import age, home_relative, short, shown_state, worker_state
from .verb import json_option, session_argument, with_client

_DETAIL_COLUMNS = (TableColumn("", least=8), path_column("", least=12))  # one detail is a path
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
    found = with_client(lambda client: find_session(client, session))
    if json:
        print_json(found)
        return
    print_table(_DETAIL_COLUMNS, _details(found))
    if found.workers:
        print()
        print_table(WORKER_COLUMNS, [worker_row(worker) for worker in found.workers])


def _details(session: Session) -> list[list[TableCell | str]]:
    """Return the rows of the table about a session."""
    state = shown_state(session)
    reason = f" ({end_reason_text(session.end_reason)})" if session.end_reason else ""
    state_cell = TableCell(f"{state.symbol} {state.label}{reason}", state.colour)
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
