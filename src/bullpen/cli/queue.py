"""`bullpen queue`: list and change the messages that wait for an agent."""

from collections.abc import Awaitable, Callable
from datetime import datetime, time, timedelta
from typing import TypeVar

import click

from .. import clock
from ..client import Client, Queue, QueueItem
from ..domain.errors import Invalid, NotFound
from .find import find_session
from .output import print_json
from .prompt_text import read_prompt
from .table import TableCell, TableColumn, print_table
from .text import age, printable, short
from .verb import json_option, quiet_option, session_argument, with_client
from .verb_group import VerbGroup

Result = TypeVar("Result")

queue = VerbGroup(help="List and change the messages that wait for an agent.")

message_argument = click.argument("message", metavar="MESSAGE", help="Its id or the beginning of it.")

_COLUMNS = (TableColumn("ID"), TableColumn("STATE"), TableColumn("AGE"), TableColumn("MESSAGE", least=12))


@queue.command()
@session_argument
@json_option
def ls(session: str, json: bool) -> None:
    """List the messages in the order in which they will be sent."""

    async def work(client: Client) -> Queue:
        return await client.queue((await find_session(client, session)).id)

    queue = with_client(work)
    if json:
        print_json(queue)
        return
    if queue.messages:
        rows = [
            [short(each.id), _state(each), age(each.queued_at), printable(each.title or each.message)]
            for each in queue.messages
        ]
        print_table(_COLUMNS, [[TableCell(text, None) for text in row] for row in rows])
    print(f"{queue.count} waiting{', paused' if queue.paused else ''}")


@queue.command()
@session_argument
@click.argument("text", help="The message; - reads standard input.")
@click.option("--title", help="Its title in lists.")
@click.option("--at", metavar="TIME", help="Not before 18:30, or 2026-03-01T18:30.")
@json_option
@quiet_option
def add(session: str, text: str, title: str | None, at: str | None, json: bool, quiet: bool) -> None:
    """Put a message at the end of the queue.

    \b
    Examples:
      bullpen queue add my-session "and run the tests"
      bullpen queue add my-session "update the dependencies" --at 23:00
      id=$(bullpen queue add -q my-session "and commit") && bullpen queue rm my-session $id
    """
    when = parse_send_time(at, clock.now_ms()) if at else None
    message = read_prompt(text)
    item = _with_session(
        session, lambda client, id: client.enqueue(id, message, title=title, scheduled_time=when)
    )
    if json:
        print_json(item)
    elif quiet:
        print(item.id)
    else:
        print(f"queued for {when:%Y-%m-%d %H:%M}" if when else "queued")


@queue.command()
@session_argument
@message_argument
def rm(session: str, message: str) -> None:
    """Remove a message from the queue."""

    async def work(client: Client, session_id: str) -> None:
        await client.remove_queued(session_id, await _find_message(client, session_id, message))

    _with_session(session, work)
    print("removed")


@queue.command()
@session_argument
@message_argument
def now(session: str, message: str) -> None:
    """Send a message next: before all others, even if the queue is paused. The current turn is cancelled."""

    async def work(client: Client, session_id: str) -> None:
        await client.send_now(session_id, await _find_message(client, session_id, message))

    _with_session(session, work)
    print("will be sent next")


@queue.command()
@session_argument
def clear(session: str) -> None:
    """Remove all messages from the queue."""
    _with_session(session, lambda client, id: client.clear_queue(id))
    print("cleared")


@queue.command()
@session_argument
def pause(session: str) -> None:
    """Stop sending messages until the queue is resumed."""
    _with_session(session, lambda client, id: client.pause_queue(id))
    print("paused")


@queue.command()
@session_argument
def resume(session: str) -> None:
    """Continue to send the messages of a paused queue."""
    _with_session(session, lambda client, id: client.resume_queue(id))
    print("resumed")


def parse_send_time(text: str, now_ms: int) -> datetime:
    """Return the next moment with a time of day (18:30), or the moment of a date and time.

    Raise Invalid for any other text, and for a moment in the past.
    """
    now = datetime.fromtimestamp(now_ms / 1000).astimezone()
    try:
        if len(text) <= len("18:30"):
            clock_time = time.fromisoformat(text)
            today = now.replace(hour=clock_time.hour, minute=clock_time.minute, second=0, microsecond=0)
            return today if today > now else today + timedelta(days=1)
        moment = datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise Invalid(f"--at needs a time like 18:30 or 2026-03-01T18:30, not {text}") from None
    if moment <= now:
        raise Invalid(f"--at needs a time in the future, not {text}")
    return moment


def _state(item: QueueItem) -> str:
    """Return the state of a queued message, or its scheduled time."""
    if item.scheduled_time is None or item.state != "queued":
        return item.state
    return f"{item.scheduled_time.astimezone():%m-%d %H:%M}"


def _with_session(session: str, work: Callable[[Client, str], Awaitable[Result]]) -> Result:
    """Call `work` with a client and the id of the named session."""

    async def find_and_work(client: Client) -> Result:
        return await work(client, (await find_session(client, session)).id)

    return with_client(find_and_work)


async def _find_message(client: Client, session_id: str, text: str) -> str:
    """Return the id of the only queued message whose id begins with a text; raise NotFound otherwise."""
    ids = [each.id for each in (await client.queue(session_id)).messages if each.id.startswith(text)]
    if len(ids) != 1:
        raise NotFound(f"{len(ids) or 'no'} messages begin with {text}; see: bullpen queue ls")
    return ids[0]
