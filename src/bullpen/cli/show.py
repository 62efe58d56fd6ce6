"""`bullpen show`: everything about one session."""

from collections.abc import Collection

from ..client import Client, Session, Worker
from ..domain.reasons import why_ended
from .find import find_session
from .news import find_unseen
from .output import print_json
from .table import Cell, Column, print_table
from .text import age, home_relative, label, life, mark, mood, short
from .verb import AsJson, SessionName, new_app, with_client

app = new_app()

_FACTS = (Column("", least=8), Column("", least=12))
_WORKERS = (
    Column("ROLE", least=8),
    Column("ID"),
    Column("TYPE"),
    Column("STATE", least=8),
    Column("PID"),
    Column("AGE"),
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


def _facts(session: Session, unseen: Collection[str]) -> list[list[Cell | str]]:
    word = mood(session, unseen)
    shape, colour = mark(word)
    reason = f" ({why_ended(session.end_reason)})" if session.end_reason else ""
    state = Cell(f"{shape} {label(word, session)}{reason}", colour)
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


def worker_row(worker: Worker) -> list[Cell | str]:
    pid = str(worker.pid) if worker.pid and worker.alive else ""
    return [worker.role, short(worker.id), worker.type, life(worker), pid, age(worker.created_at)]


WORKER_COLUMNS = _WORKERS
