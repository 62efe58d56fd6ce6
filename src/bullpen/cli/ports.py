"""`bullpen ports`: show the TCP ports on which programs of a session listen."""

from typing import NamedTuple

import click
from msgspec import to_builtins

from ..client import Client, Port, Session
from .complete import complete_session
from .find import find_session
from .output import print_json
from .table import TableColumn, print_table
from .verb import json_option, with_client

_COLUMNS = (
    TableColumn("PORT"),
    TableColumn("ADDRESS"),
    TableColumn("SESSION", least=10),
    TableColumn("ROLE", least=6),
    TableColumn("PID"),
    TableColumn("COMMAND", least=8),
)


class WorkerPort(NamedTuple):
    """A TCP port and the session whose program listens on it."""

    session: Session
    port: Port


@click.command()
@click.argument(
    "session",
    required=False,
    help="A title, an id, or its beginning; by default every session.",
    shell_complete=complete_session,
)
@json_option
def ports(session: str | None, json: bool) -> None:
    """Show the ports on which programs of a session listen.

    \b
    Examples:
      bullpen ports my-session
      bullpen ports --json | jq .ports[].port
    """
    found = with_client(lambda client: _find_ports(client, session))
    if json:
        print_json({"ports": [{"sessionId": each.session.id} | to_builtins(each.port) for each in found]})
    elif found:
        print_table(_COLUMNS, [_row(each) for each in found])
    else:
        print("no program listens; start your dev server in a terminal of the session")


async def _find_ports(client: Client, name: str | None) -> list[WorkerPort]:
    """Return the ports of one session or of all active sessions, lowest first."""
    sessions = (
        await client.sessions(status=("active",)) if name is None else [await find_session(client, name)]
    )
    found = [WorkerPort(each, port) for each in sessions for port in await client.ports(each.id)]
    return sorted(found, key=lambda each: each.port.port)


def _row(found: WorkerPort) -> list[str]:
    """Return the table row of a port."""
    port = found.port
    return [str(port.port), port.address, found.session.title, port.role, str(port.pid), port.command]
