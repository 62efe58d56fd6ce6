"""`bullpen attach`: a worker's terminal, used from this one."""

import signal
import sys
from typing import Annotated

import typer

from ..client import Client, ExitFrame
from .find import SessionMatch, find, terminal_of
from .terminal.tty import Tty
from .text import short
from .verb import Target, new_app, with_client

app = new_app()


@app.command()
def attach(
    target: Target,
    read_only: Annotated[bool, typer.Option("--read-only", "-r", help="Look, but do not type.")] = False,
) -> int:
    """Use a worker's terminal from here.

    Ctrl-] detaches, and so does ~. at the start of a line; the program goes on. When it ends, its exit
    code is ours. A restart of the server is survived: what you type meanwhile is kept and sent.

    \b
    Examples:
      bullpen attach my-session
      bullpen attach my-session/terminal-2
      bullpen attach --read-only 3f2a
    """
    tty = Tty("to read from a script use: bullpen logs -f")
    return with_client(lambda client: _attach(client, tty, target, read_only))


async def _attach(client: Client, tty: Tty, target: str, read_only: bool) -> int:
    found = await find(client, target)
    return await attach_to(client, tty, SessionMatch(found.session, terminal_of(found)), read_only)


async def attach_to(client: Client, tty: Tty, found: SessionMatch, read_only: bool = False) -> int:
    """Attaches until the person or the program leaves; returns the exit code."""
    from .terminal.attachment import Attachment  # noqa: PLC0415  (only who attaches needs sockets)

    assert found.worker is not None
    _say(f"attached to {found.name}{' to look' if read_only else ''}; Ctrl-] or ~. detaches")
    async with client.terminal(found.session.id, found.worker.id, may_skip=True) as terminal:
        end = await Attachment(tty, terminal, read_only).run()
    if end is None:
        _say(f"detached from {found.name}; come back with: bullpen attach {short(found.session.id)}")
        return 0
    _say(f"{found.name} {_ending(end)}")
    return exit_code(end)


def exit_code(end: ExitFrame) -> int:
    """The program's own, as a shell would tell it."""
    return 128 + _signal_number(end.signal) if end.signal else end.code or 0


def _signal_number(name: str) -> int:
    """Also of those for real time, which are counted from the first of them."""
    first, sign, further = name.partition("+")
    return getattr(signal.Signals, first, signal.SIGTERM) + (int(further) if sign else 0)


def _ending(end: ExitFrame) -> str:
    return f"was ended by {end.signal}" if end.signal else f"ended with code {end.code}"


def _say(sentence: str) -> None:
    print(f"[{sentence}]", file=sys.stderr, flush=True)
