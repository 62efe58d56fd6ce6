"""`bullpen agents`: list agents, or test whether an agent works on this machine."""

import asyncio
import os
import shlex
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path

import click

from .. import clock
from ..client import Agent, Client, Event, Session, Worker
from ..domain.errors import BullpenError, NotFound
from .output import print_json
from .session_place import create_session
from .table import TableCell, TableColumn, print_table
from .text import worker_state
from .values import Number
from .verb import json_option, with_client
from .verb_group import VerbGroup

agents = VerbGroup(help="List agents, or test whether one works here.")

_COLUMNS = (
    TableColumn("ID"),
    TableColumn("NAME"),
    TableColumn("STATE"),
    TableColumn("LOGIN"),
    TableColumn("TO DO", least=12),
)
_LOGINS = {
    "yes": TableCell("logged in", "green"),
    "no": TableCell("no login found", "amber"),
    "unknown": TableCell("unknown", "grey"),
    "none": TableCell("not needed", "grey"),
}


class DidNotStart(BullpenError):
    """The agent under test is not installed, or was not ready in time."""

    code = "agent_failed"


@agents.command()
@json_option
def ls(json: bool) -> None:
    """List the agents that are defined, installed or not."""
    agents = with_client(lambda client: client.agents())
    if json:
        print_json({"agents": agents})
        return
    print_table(_COLUMNS, [_row(agent) for agent in agents])


@agents.command()
@click.argument("agent", help="The id of the agent.")
@click.option(
    "--directory", "-C", type=click.Path(path_type=Path), default=".", help="The directory it works in."
)
@click.option(
    "--timeout", type=Number(float, minimum=0), default=60, metavar="SECONDS", help="Give up after this time."
)
def test(agent: str, directory: Path, timeout: float) -> None:
    """Start an agent in a session of its own, wait until it is ready, and end it."""
    path = os.path.abspath(directory.expanduser())
    started = clock.monotonic()
    description = with_client(lambda client: _test(client, agent, path, timeout))
    print(f"{agent} works: {description}, ready after {clock.monotonic() - started:.1f} s")


async def _test(client: Client, agent_id: str, path: str, timeout: float) -> str:
    """Start the agent in a new session; return its name and version once it is ready.

    Raise NotFound for an unknown agent, and DidNotStart if it is not installed or does not become ready in
    time.
    """
    agent = next((each for each in await client.agents() if each.id == agent_id), None)
    if agent is None:
        raise NotFound(f"there is no agent {agent_id}; see: bullpen agents ls")
    if not agent.installed:
        raise DidNotStart(f"{agent.name} is not installed; to install it, run: {agent.install_hint}")
    session = await create_session(client, location_path=path, title=f"test of {agent_id}", agent_id=agent_id)
    try:
        async with asyncio.timeout(timeout):
            worker = await _wait_until_started(client, session)
            answers = await client.events(session.id, types=["agent_initialized"])
    except TimeoutError:
        raise DidNotStart(f"{agent.name} was not ready after {timeout:g} seconds") from None
    finally:
        await client.delete_session(session.id, purge=True)
    if worker.state != "active":
        raise DidNotStart(f"{agent.name} {worker_state(worker)}")
    return _name_and_version(answers.events) or agent.name


async def _wait_until_started(client: Client, session: Session) -> Worker:
    """Return the only worker of a session once it has started or failed."""
    async with aclosing(client.follow(session.id, session.last_seq)) as events:
        while True:
            (worker,) = (await client.session(session.id)).workers
            if worker.state != "spawning":
                return worker
            await anext(events)


def _name_and_version(events: Iterable[Event]) -> str:
    """Return the name and version that the agent reported, or an empty text."""
    for event in events:
        match event.data:
            case {"result": {"agentInfo": {"name": str(name)} as info}}:
                return " ".join(
                    str(part) for part in (info.get("title") or name, info.get("version")) if part
                )
    return ""


def _row(agent: Agent) -> list[TableCell | str]:
    """Return the table row of an agent."""
    if not agent.installed:
        return [agent.id, agent.name, TableCell("not installed", "grey"), "", agent.install_hint]
    state = TableCell("default" if agent.default else "installed", "green")
    return [agent.id, agent.name, state, _LOGINS.get(agent.logged_in, _LOGINS["unknown"]), _login_hint(agent)]


def _login_hint(agent: Agent) -> str:
    """Return the command that logs in to an agent, if no login was found."""
    return (
        f"run: {shlex.join(agent.login_command)}" if agent.logged_in == "no" and agent.login_command else ""
    )
