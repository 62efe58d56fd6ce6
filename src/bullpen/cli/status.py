"""`bullpen status`: show whether the server runs and which sessions need the user."""

from collections import Counter

import click

from .. import __version__
from ..client import Client, Health, ServerDiscovery, ServerNotRunning, Session
from .output import print_json
from .text import by_urgency, fit, paint, printable, short, shown_state
from .verb import json_option, with_client

NEEDS_A_PERSON = 3
_MAX_LISTED = 5
_MAX_TITLE_COLUMNS = 60


@click.command()
@click.option("--pid", is_flag=True, help="Print only the process id of this machine's server.")
@json_option
def status(pid: bool, json: bool) -> int:
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
    health, sessions = with_client(_fetch)
    states = Counter(shown_state(session).word for session in sessions)
    if health.away:
        _report_degraded(health, json)
        return 1
    if json:
        print_json({"status": health.status, "version": health.version, "sessions": states})
    else:
        _print(health, by_urgency(sessions))
    return NEEDS_A_PERSON if states["needs input"] else 0


def greet() -> None:
    """Print the status of the server and the most useful commands, as `bullpen` without a verb does."""
    try:
        health, sessions = with_client(_fetch)
    except ServerNotRunning as error:
        print(f"Bullpen {__version__} runs coding agents and never loses a session.\n\n{error}")
        print("Then open a terminal:  bullpen new\nEverything else:       bullpen --help")
        return
    if health.away:
        _report_degraded(health, json=False)
        return
    sessions = by_urgency(sessions)
    _print(health, sessions)
    print()
    if sessions:
        print(f"Come back to one:   {return_command(sessions[0])}")
    print(
        "Open a terminal:    bullpen new\nOpen the browser:   bullpen url\nEverything else:    bullpen --help"
    )


def return_command(session: Session) -> str:
    """Return the command that continues a session: attach for a terminal, chat for an agent without one."""
    verb = "attach" if any(worker.has_terminal for worker in session.workers) else "chat"
    return f"bullpen {verb} {short(session.id)}"


async def _fetch(client: Client) -> tuple[Health, list[Session]]:
    """Return the health and the active sessions."""
    health = await client.health()
    return health, [] if health.away else await client.sessions(status=("active",))


def _report_degraded(health: Health, json: bool) -> None:
    """Print to standard output which services the server cannot reach."""
    if json:
        print_json({"status": health.status, "version": health.version, "away": health.away})
    else:
        away = " and ".join(health.away)
        print(f"Bullpen {health.version or __version__} is running, but cannot reach its {away}.")
        print(f"Terminals and agents go on. The server goes on by itself when its {away} is back.")


def _print(health: Health, sessions: list[Session]) -> None:
    """Print the counts of sessions by state, and the most urgent sessions."""
    states = Counter(shown_state(session).word for session in sessions)
    print(f"Bullpen {health.version or __version__} is running; {_format_counts(states) or 'no sessions'}.")
    for session in sessions[:_MAX_LISTED]:
        state = shown_state(session)
        title = fit(printable(session.title), _MAX_TITLE_COLUMNS)
        details = f"{state.label} · {short(session.id)}"
        print(f"  {paint(state.symbol, state.colour)} {title}  {paint(details, 'grey')}")
    if len(sessions) > _MAX_LISTED:
        print(f"  … and {len(sessions) - _MAX_LISTED} more: bullpen ls")


def _format_counts(states: Counter[str]) -> str:
    """Return the counts of states, the most common first."""
    return ", ".join(f"{count} {state}" for state, count in states.most_common())
