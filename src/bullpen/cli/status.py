"""`bullpen status`: whether the server runs, and what needs a person. Also what `bullpen` alone says."""

from collections import Counter
from collections.abc import Collection
from typing import Annotated

import typer

from .. import __version__
from ..client import Client, Health, ServerDiscovery, ServerNotRunning, Session
from .output import print_json
from .text import by_urgency, fit, label, mark, mood, paint, printable, short
from .unseen_changes import find_unseen
from .verb import AsJson, new_app, with_client

app = new_app()

NEEDS_A_PERSON = 3
_LISTED = 5
_TITLE = 60  # columns


@app.command()
def status(
    pid: Annotated[
        bool, typer.Option("--pid", help="Print only the process id of this machine's server.")
    ] = False,
    json: AsJson = False,
) -> int:
    """Show whether the server runs and what needs you.

    Exits with 3 when something waits for a person, with 1 when the server does not run or cannot reach its
    database.

    \b
    Examples:
      bullpen status
      kill $(bullpen status --pid)
    """
    if pid:
        print(ServerDiscovery.from_settings().pid())
        return 0
    health, sessions, unseen = with_client(_look)
    moods = Counter(mood(session, unseen) for session in sessions)
    if health.away:
        _report_absence(health, json)
        return 1
    if json:
        print_json({"status": health.status, "version": health.version, "sessions": moods})
    else:
        _print(health, by_urgency(sessions, unseen), unseen)
    return NEEDS_A_PERSON if moods["needs input"] else 0


def greet() -> None:
    """Where things stand, and the next steps."""
    try:
        health, sessions, unseen = with_client(_look)
    except ServerNotRunning as error:
        print(f"Bullpen {__version__} runs coding agents and never loses a session.\n\n{error}")
        print("Then open a terminal:  bullpen new\nEverything else:       bullpen --help")
        return
    if health.away:
        _report_absence(health, json=False)
        return
    sessions = by_urgency(sessions, unseen)
    _print(health, sessions, unseen)
    print()
    if sessions:
        print(f"Come back to one:   {way_back(sessions[0])}")
    print(
        "Open a terminal:    bullpen new\nOpen the browser:   bullpen url\nEverything else:    bullpen --help"
    )


def way_back(session: Session) -> str:
    """A terminal is attached to, an agent without one is talked to."""
    verb = "attach" if any(worker.has_terminal for worker in session.workers) else "chat"
    return f"bullpen {verb} {short(session.id)}"


async def _look(client: Client) -> tuple[Health, list[Session], Collection[str]]:
    health = await client.health()
    if health.away:
        return health, [], ()
    sessions = await client.sessions(status=("active",))
    ready = health.status != "starting"  # until then nobody knows what waits
    return health, sessions, await find_unseen(client) if sessions and ready else ()


def _report_absence(health: Health, json: bool) -> None:
    if json:
        print_json({"status": health.status, "version": health.version, "away": health.away})
    else:
        away = " and ".join(health.away)
        print(f"Bullpen {health.version or __version__} is running, but cannot reach its {away}.")
        print(f"Terminals and agents go on. The server goes on by itself when its {away} is back.")


def _print(health: Health, sessions: list[Session], unseen: Collection[str]) -> None:
    moods = Counter(mood(session, unseen) for session in sessions)
    print(f"Bullpen {health.version or __version__} is running; {_count(moods) or 'no sessions'}.")
    for session in sessions[:_LISTED]:
        word = mood(session, unseen)
        shape, colour = mark(word)
        title = fit(printable(session.title), _TITLE)
        rest = f"{label(word, session)} · {short(session.id)}"
        print(f"  {paint(shape, colour)} {title}  {paint(rest, 'grey')}")
    if len(sessions) > _LISTED:
        print(f"  … and {len(sessions) - _LISTED} more: bullpen ls")


def _count(moods: Counter[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in moods.most_common())
