"""`bullpen attach`: use a worker's terminal from the user's own terminal."""

import signal
import sys

import click

from ..client import Client, ExitFrame, Worker
from ..domain.errors import RemoteFault
from .find import SessionMatch, find, terminal_of
from .terminal.tty import Tty
from .text import short
from .verb import target_argument, with_client


@click.command()
@target_argument
@click.option("--read-only", "-r", is_flag=True, help="Watch, but do not type.")
def attach(target: str, read_only: bool) -> int:
    """Use a worker's terminal from here.

    Ctrl-] detaches, and so does ~. at the start of a line; the program goes on. When the program ends, attach
    exits with its exit code. When the server restarts, attach connects again and sends what you typed.

    \b
    Examples:
      bullpen attach my-session
      bullpen attach my-session/terminal-2
      bullpen attach --read-only 3f2a
    """
    tty = Tty("to read from a script use: bullpen logs -f")
    return with_client(lambda client: _attach(client, tty, target, read_only))


async def _attach(client: Client, tty: Tty, target: str, read_only: bool) -> int:
    """Attach to the named session or worker."""
    found = await find(client, target)
    return await attach_to(client, tty, SessionMatch(found.session, terminal_of(found)), read_only)


async def attach_to(client: Client, tty: Tty, found: SessionMatch, read_only: bool = False) -> int:
    """Attach until the user detaches or the program ends, and return the exit code."""
    from .terminal.attachment import Attachment  # noqa: PLC0415  (only attaching needs WebSockets)

    assert found.worker is not None
    _print_notice(f"attached to {found.name}{', read-only' if read_only else ''}; Ctrl-] or ~. detaches")
    async with client.terminal(found.session.id, found.worker.id, may_skip=True) as terminal:
        end = await Attachment(tty, terminal, read_only).run()
    if end is None:
        _print_notice(f"detached from {found.name}; come back with: bullpen attach {short(found.session.id)}")
        return 0
    await raise_if_failed(client, found.worker, end)
    _print_notice(f"{found.name} {_ending(end)}")
    return exit_code(end)


async def raise_if_failed(client: Client, worker: Worker, end: ExitFrame) -> None:
    """Raise RemoteFault if a program has ended without a code because it could not start or was lost."""
    if end.code is None and end.signal is None:
        now = await client.worker(worker.session_id, worker.id)
        if now.state == "failed":
            raise RemoteFault(f"{now.role} failed: {now.error}")


def exit_code(end: ExitFrame) -> int:
    """Return the exit code of the program, or 128 plus the signal that ended it."""
    return 128 + _signal_number(end.signal) if end.signal else end.code or 0


def _signal_number(name: str) -> int:
    """Return the number of a signal; real-time signals are named like SIGRTMIN+3."""
    base, sign, offset = name.partition("+")
    return getattr(signal.Signals, base, signal.SIGTERM) + (int(offset) if sign else 0)


def _ending(end: ExitFrame) -> str:
    """Return how the program ended, as part of a sentence."""
    return f"was ended by {end.signal}" if end.signal else f"ended with code {end.code}"


def _print_notice(sentence: str) -> None:
    """Print a notice in brackets to standard error."""
    print(f"[{sentence}]", file=sys.stderr, flush=True)
