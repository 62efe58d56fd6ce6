"""`bullpen exec`: run a command in a terminal of a session, and print its output."""

import asyncio
import shutil
import signal
import sys
from contextlib import suppress

import click

from ..client import Client, ExitFrame, HistoryFrame, OutputFrame, Session, Worker
from ..client.tasks import background_task
from ..domain.commands import command_name
from ..domain.errors import Conflict, Invalid
from .attach import exit_code, raise_if_failed
from .command_line import VerbWithCommand
from .find import find_session
from .terminal.filter import OutputFilter
from .terminal.plain import PlainTextConverter
from .verb import session_argument, with_client

_CTRL_C = b"\x03"


@click.command("exec", cls=VerbWithCommand)
@session_argument
@click.option("--role", help="The role of its terminal; by default the name of the program.")
def exec_(session: str, role: str | None, command: tuple[str, ...]) -> int:
    """Run a command in a session, print its output as it comes, and exit with its exit code.

    It runs in a terminal of the session, without a shell, and gets no input. Ctrl-C ends it, and so does the
    end of a program that reads the output, such as head. It goes on when the server restarts.

    \b
    Examples:
      bullpen exec my-session -- make test
      bullpen exec my-session -- sh -c "npm ci && npm test" | tee test.log
    """
    if not command:
        raise Invalid("name the command after --, as in: bullpen exec my-session -- make test")

    async def work(client: Client) -> int:
        found = await find_session(client, session)
        cols, rows = shutil.get_terminal_size() if sys.stdout.isatty() else (None, None)
        worker = await client.add_worker(
            found.id, role=role or _free_role(found, command), command=command, cols=cols, rows=rows
        )
        end = await _print_output(client, worker)
        await raise_if_failed(client, worker, end)
        return exit_code(end)

    return with_client(work)


def _free_role(session: Session, command: tuple[str, ...]) -> str | None:
    """Return the program's name as a role; None if another worker uses it: then the server makes one."""
    role = command_name(command[:1]).lower()
    holders = [each for each in session.workers if each.role == role and each.state != "terminated"]
    return None if any(each.alive or each.type != "terminal" for each in holders) else role


async def _print_output(client: Client, worker: Worker) -> ExitFrame:
    """Print a terminal's output until its program ends, and return its exit.

    Ctrl-C ends the program, the second time by force. So does a pipe whose reader has ended.
    """
    loop, interrupted = asyncio.get_running_loop(), asyncio.Event()
    shown = OutputFilter() if sys.stdout.isatty() else None
    converter = shown or PlainTextConverter(colours=False)

    async def interrupt() -> None:
        await interrupted.wait()
        with suppress(Conflict):  # it has just ended
            await terminal.write(_CTRL_C)
        interrupted.clear()
        await interrupted.wait()
        await client.end_worker(worker.session_id, worker.id)

    loop.add_signal_handler(signal.SIGINT, interrupted.set)
    async with (
        client.terminal(worker.session_id, worker.id, after=0) as terminal,
        background_task(interrupt()),
    ):
        async for frame in terminal:
            match frame:
                case OutputFrame(data=data) | HistoryFrame(data=data):
                    try:
                        sys.stdout.buffer.write(converter.feed(data))
                        sys.stdout.buffer.flush()
                    except BrokenPipeError:
                        await client.end_worker(worker.session_id, worker.id)
                        raise
                case ExitFrame():
                    sys.stdout.buffer.write(shown.restore() if shown else b"")
                    return frame
    raise AssertionError("the output of a terminal ends with its exit")
