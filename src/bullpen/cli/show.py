"""`bullpen show`: everything about one session."""

from collections.abc import Collection

from ..client import Client, Session, Worker
from ..domain.reasons import end_reason_text
from .find import find_session
from .output import print_json
from .table import TableCell, TableColumn, print_table
from .text import age, home_relative, label, life, mark, mood, short
from .unseen_changes import find_unseen
from .verb import AsJson, SessionName, new_app, with_client

app = new_app()

_FACTS = (TableColumn("", least=8), TableColumn("", least=12))
_WORKERS = (
    TableColumn("ROLE", least=8),
    TableColumn("ID"),
    TableColumn("TYPE"),
    TableColumn("STATE", least=8),
    TableColumn("PID"),
    TableColumn("AGE"),
)


@app.command()
def show(session: SessionName, json: AsJson = False) -> None:
    """Show everything about a session.

    \b
    Examples:
      bullpen show my-session
      bullpen show my-session --json | jq .workers
    """
    found, unseen = with_client(lambda client: _look(client, session))
    if json:
        print_json(found)
        return
    print_table(_FACTS, _facts(found, unseen))
    if found.workers:
        print()
        print_table(_WORKERS, [worker_row(worker) for worker in found.workers])


async def _look(client: Client, name: str) -> tuple[Session, Collection[str]]:
    session = await find_session(client, name)
    return session, await find_unseen(client) if session.active else ()


def _facts(session: Session, unseen: Collection[str]) -> list[list[TableCell | str]]:
    word = mood(session, unseen)
    shape, colour = mark(word)
    reason = f" ({end_reason_text(session.end_reason)})" if session.end_reason else ""
    state = TableCell(f"{shape} {label(word, session)}{reason}", colour)
    return [
        ["title", session.title],
        ["id", session.id],
        ["state", state],
        ["type", session.type],
        ["directory", home_relative(session.location_path)],
        ["started", f"{age(session.created_at)} ago"],
        ["changed", f"{age(session.updated_at)} ago"],
        ["events", str(session.last_seq)],
        ["when the last viewer leaves", "ends" if session.on_last_disconnect == "terminate" else "goes on"],
    ]


def worker_row(worker: Worker) -> list[TableCell | str]:
    pid = str(worker.pid) if worker.pid and worker.alive else ""
    return [worker.role, short(worker.id), worker.type, life(worker), pid, age(worker.created_at)]


WORKER_COLUMNS = _WORKERS
