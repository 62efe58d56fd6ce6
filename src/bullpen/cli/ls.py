"""`bullpen ls`: list sessions; those that need the user come first."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import click

from ..client import Client, Session
from .find import find_repository
from .output import print_json
from .table import TableCell, TableColumn, path_column, print_table
from .text import (
    age,
    by_urgency,
    display_state,
    failure_reason,
    fit,
    home_relative,
    paint,
    short,
    state_label,
    state_symbol,
)
from .unseen_changes import find_unseen
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
    found, unseen = with_client(
        lambda client: _fetch(client, statuses, repo, with_unseen=not (json or quiet))
    )
    sessions = found if everything else [each for each in found if each.active]
    if json:
        print_json({"sessions": sessions})
    elif quiet:
        for session in sessions:
            print(session.id)
    else:
        if sessions:
            print_table(_COLUMNS, [_row(each, unseen) for each in by_urgency(sessions, unseen)])
        failed = 0 if everything else _count_recent_failures(found)
        if failed:
            print(paint(f"{failed} failed in the last day; see: bullpen ls -a", "red"))
        elif not sessions:
            print("no sessions; start one with: bullpen new")


async def _fetch(
    client: Client, statuses: tuple[str, ...], repo: str | None, with_unseen: bool
) -> tuple[list[Session], Collection[str]]:
    """Return the sessions and, if asked for, the ids of workers with turns that were not seen yet."""
    repo_id = (await find_repository(client, repo)).id if repo else None
    sessions = await client.sessions(status=statuses, repo_id=repo_id)
    return sessions, await find_unseen(client) if with_unseen and sessions else ()


def _count_recent_failures(sessions: list[Session]) -> int:
    """Count the sessions that ended with an error in the last day, which are not listed."""
    now = datetime.now(UTC)
    return sum(not each.active and now - each.updated_at < _RECENT for each in sessions)


def _row(session: Session, unseen: Collection[str]) -> list[TableCell | str]:
    """Return the table row of a session."""
    state = display_state(session, unseen)
    symbol, colour = state_symbol(state)
    reason = failure_reason(session) if state == "error" else None
    text = f"{state}: {fit(reason, _MAX_REASON_COLUMNS)}" if reason else state_label(state, session)
    roles = ", ".join(worker.role for worker in session.workers if worker.alive)
    return [
        TableCell(symbol, colour),
        session.title,
        short(session.id),
        TableCell(text, colour),
        roles or "none",
        home_relative(session.location_path),
        age(session.created_at),
    ]
