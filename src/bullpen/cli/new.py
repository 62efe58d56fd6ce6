"""`bullpen new`: create a session with a terminal or an agent, in a directory or a worktree."""

import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import click

from ..client import Client, Session
from ..domain.errors import BullpenError, Invalid
from .attach import attach_to
from .command_line import VerbWithCommand
from .find import SessionMatch
from .model_and_mode import ModelAndMode, mode_option, model_option
from .output import print_json
from .session_place import base_option, branch_option, create_session, session_location, worktree_option
from .terminal.tty import Tty
from .text import short
from .verb import json_option, quiet_option, with_client


@click.command(cls=VerbWithCommand)
@click.argument(
    "directory", type=click.Path(path_type=Path), required=False, help="Its directory; by default this one."
)
@click.option("--name", "-n", help="The session's title.")
@worktree_option
@branch_option
@base_option
@click.option("--agent", help="Start this agent instead of a terminal.")
@model_option
@mode_option
@click.option("--role", help="The role of the agent or terminal.")
@click.option("--detach", "-d", is_flag=True, help="Start it and return at once.")
@json_option
@quiet_option
def new(
    directory: Path | None,
    name: str | None,
    worktree: bool,
    branch: str | None,
    base: str | None,
    agent: str | None,
    model: str | None,
    mode: str | None,
    role: str | None,
    detach: bool,
    json: bool,
    quiet: bool,
    command: tuple[str, ...],
) -> int:
    """Start a terminal in a new session and attach to it; it runs a shell or the command after --.

    \b
    Examples:
      bullpen new
      bullpen new ~/src/site --name site
      bullpen new -- htop
      bullpen new --worktree --branch fix-login --base main
      bullpen new -w --agent claude --role reviewer
      id=$(bullpen new -d -q) && bullpen attach $id
    """
    if (model or mode) and not agent:
        raise Invalid(f"{'--model' if model else '--mode'} is for an agent; say which with --agent")
    if agent and command:
        raise Invalid("--agent and a command exclude each other; leave one out")

    async def start(client: Client) -> SessionMatch:
        location = await session_location(client, directory, worktree, branch, base, name)
        if agent is None:
            return await _start_terminal(client, location, name, role, command)
        session = await create_session(client, **location, title=name, agent_id=agent, role=role)
        return await _choose(client, session, ModelAndMode(model, mode))

    if not (detach or json or quiet or agent):
        tty = Tty("to start it without one use: bullpen new --detach")
        return with_client(lambda client: _attach_to_new(client, tty, start))
    session = with_client(lambda client: _start_session(client, start))
    if json:
        print_json(session)
    else:
        advice = "talk with: bullpen chat" if agent else "attach with: bullpen attach"
        print(session.id if quiet else f"started {session.title}; {advice} {short(session.id)}")
    return 0


async def _attach_to_new(client: Client, tty: Tty, start: Callable[[Client], Awaitable[SessionMatch]]) -> int:
    """Create the session and attach to it."""
    return await attach_to(client, tty, await start(client))


async def _start_session(client: Client, start: Callable[[Client], Awaitable[SessionMatch]]) -> Session:
    """Create the session and return it as it is now."""
    return await client.session((await start(client)).session.id)


async def _choose(client: Client, session: Session, choice: ModelAndMode) -> SessionMatch:
    """Set model and mode of a new agent; remove the session if the agent refuses."""
    try:
        await choice.apply(client, session.id)
    except BullpenError:
        # A failed session stays: it shows why its agent did not start.
        if (await client.session(session.id)).active:
            await client.delete_session(session.id, purge=True)
        raise
    return SessionMatch(session)


async def _start_terminal(
    client: Client, location: dict[str, Any], name: str | None, role: str | None, command: tuple[str, ...]
) -> SessionMatch:
    """Create a session with a terminal; remove the session if the terminal does not start."""
    session = await create_session(client, **location, title=name)
    cols, rows = shutil.get_terminal_size() if sys.stdout.isatty() else (None, None)
    try:
        terminal = await client.add_worker(
            session.id, "terminal", role=role, command=command, cols=cols, rows=rows
        )
    except BullpenError:
        await client.delete_session(session.id, purge=True)
        raise
    return SessionMatch(session, terminal)
