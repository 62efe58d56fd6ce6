"""`bullpen ls`: list sessions; those that need the user come first."""

from datetime import UTC, datetime, timedelta

import click

from ..client import Client, Session, Worker
from .find import find_repository
from .output import print_json
from .table import TableCell, TableColumn, path_column, print_table
from .text import age, by_urgency, fit, home_relative, paint, short, shown_state
from .verb import json_option, quiet_option, with_client

_COLUMNS = (
    TableColumn(""),
    TableColumn("TITLE", least=12),
    TableColumn("ID"),
    TableColumn("STATE", least=5),
    TableColumn("WORKERS", least=8),
    path_column("DIRECTORY", least=8),
    TableColumn("AGE"),
)
_RECENT = timedelta(days=1)
_MAX_REASON_COLUMNS = 60


@click.command()
@click.option("--all", "-a", "everything", is_flag=True, help="Ended sessions too.")
@click.option("--repo", help="Only sessions of this repository.")
@json_option
@quiet_option
def ls(everything: bool, repo: str | None, json: bool, quiet: bool) -> None:
    """List sessions.

    \b
    Examples:
      bullpen ls
      bullpen ls --all --json | jq '.sessions[].title'
      bullpen stop $(bullpen ls -q)
    """
    statuses = () if everything else ("active",) if json or quiet else ("active", "error")
    found = with_client(lambda client: _fetch(client, statuses, repo))
    sessions = found if everything else [each for each in found if each.active]
    if json:
        print_json({"sessions": sessions})
    elif quiet:
        for session in sessions:
            print(session.id)
    else:
        if sessions:
            print_table(_COLUMNS, [_row(each) for each in by_urgency(sessions)])
        failed = 0 if everything else _count_recent_failures(found)
        if failed:
            print(paint(f"{failed} failed in the last day; see: bullpen ls -a", "red"))
        elif not sessions:
            print("no sessions; start one with: bullpen new")


async def _fetch(client: Client, statuses: tuple[str, ...], repo: str | None) -> list[Session]:
    """Return the sessions with these statuses, all of them or those of a repository."""
    repo_id = (await find_repository(client, repo)).id if repo else None
    return await client.sessions(status=statuses, repo_id=repo_id)


def _count_recent_failures(sessions: list[Session]) -> int:
    """Count the sessions that ended with an error in the last day, which are not listed."""
    now = datetime.now(UTC)
    return sum(not each.active and now - each.updated_at < _RECENT for each in sessions)


def _row(session: Session) -> list[TableCell | str]:
    """Return the table row of a session."""
    state = shown_state(session)
    failed = session.attention.need == "error"
    text = f"{state.word}: {fit(session.attention.why, _MAX_REASON_COLUMNS)}" if failed else state.label
    workers = ", ".join(_describe_worker(worker) for worker in session.workers if worker.alive)
    return [
        TableCell(state.symbol, state.colour),
        session.title,
        short(session.id),
        TableCell(text, state.colour),
        workers or "none",
        home_relative(session.location_path),
        age(session.created_at),
    ]


def _describe_worker(worker: Worker) -> str:
    """Return the role of a worker, the program in its terminal, and for an agent that it has no sandbox."""
    is_named = worker.foreground in (None, worker.role)
    name = worker.role if is_named else f"{worker.role} ({worker.foreground})"
    return f"{name} [open]" if worker.type == "agent" and worker.sandbox == "open" else name
