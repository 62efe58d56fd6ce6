"""`bullpen logs`: print the output of a terminal, or the conversation or events of a session or an agent."""

import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import click

from ..client import Client, Event, HistoryFrame, OutputFrame
from ..domain.errors import Invalid
from .event_line import describe
from .find import SessionMatch, find
from .last_lines import LastLines
from .output import print_json_line
from .terminal.plain import PlainTextConverter
from .text import shows_colours
from .transcript import Transcript
from .values import Number
from .verb import json_option, target_argument, with_client

_EVENTS_PER_PAGE = 1000


@click.command()
@target_argument
@click.option("--follow", "-f", is_flag=True, help="Continue with new output or events.")
@click.option("--tail", "-n", type=Number(int, minimum=0), metavar="LINES", help="Only the last lines.")
@click.option("--raw", is_flag=True, help="Unfiltered bytes, which can control your terminal.")
@click.option("--events", is_flag=True, help="The events, one in each line, instead of the conversation.")
@json_option
def logs(target: str, follow: bool, tail: int | None, raw: bool, events: bool, json: bool) -> None:
    """Print a terminal's output, or the conversation of an agent or a session.

    \b
    Examples:
      bullpen logs my-session
      bullpen logs my-session/claude --events --tail 20
      bullpen logs my-session --json | jq -r .type
      bullpen logs my-session/terminal --tail 20
      bullpen logs -f my-session/terminal | grep -i error
    """

    async def work(client: Client) -> None:
        found = await find(client, target)
        worker = found.worker
        if worker is not None and worker.has_terminal and not events:
            if json:
                raise Invalid("a terminal has text, not JSON; add --events for its events")
            await _print_output(client, found, follow, tail, raw)
        elif raw:
            raise Invalid("only a terminal has raw bytes; name one as session/role")
        elif events or json or (worker is not None and worker.type != "agent"):
            show = print_json_line if json else _print_event
            await _print_events(client, found, follow, tail, show)
        else:
            await _print_conversation(client, found, follow, tail)

    with_client(work)


async def _print_events(
    client: Client, found: SessionMatch, follow: bool, tail: int | None, show: Callable[[Event], None]
) -> None:
    """Print the events of a session or a worker, and with `follow` new ones."""
    async for event in _past_events(client, found, tail):
        show(event)
    if follow:
        async for event in _new_events(client, found):
            show(event)


async def _print_conversation(client: Client, found: SessionMatch, follow: bool, tail: int | None) -> None:
    """Print the conversation of a session or an agent, and with `follow` its continuation."""
    transcript, last = Transcript(), LastLines(tail)
    async for event in _past_events(client, found, None):
        _write(last.feed(transcript.feed(event)))
    _write(last.finish())
    if follow:
        async for event in _new_events(client, found):
            _write(transcript.feed(event))


async def _new_events(client: Client, found: SessionMatch) -> AsyncIterator[Event]:
    """Yield the events of a session or a worker that come after those of `_past_events`."""
    async with aclosing(client.follow(found.session.id, found.session.last_seq)) as events:
        async for event in events:
            if _belongs_to(event, found):
                yield event


async def _past_events(client: Client, found: SessionMatch, tail: int | None) -> AsyncIterator[Event]:
    """Yield the past events of a session or a worker, or only the last `tail` of them."""
    last = found.session.last_seq
    seq = max(0, last - tail) if tail is not None and found.worker is None else 0
    pending: deque[Event] = deque(maxlen=tail)
    while seq < last:
        page = await client.events(found.session.id, after=seq, before=last + 1, limit=_EVENTS_PER_PAGE)
        pending += [event for event in page.events if _belongs_to(event, found)]
        seq = page.events[-1].seq
        while tail is None and pending:
            yield pending.popleft()
    for event in pending:
        yield event


def _belongs_to(event: Event, found: SessionMatch) -> bool:
    """Return whether an event is of the named worker; true if a session was named."""
    return found.worker is None or event.worker_id == found.worker.id


def _print_event(event: Event) -> None:
    """Print an event as a line."""
    print(describe(event), flush=True)


async def _print_output(
    client: Client, found: SessionMatch, follow: bool, tail: int | None, raw: bool
) -> None:
    """Print the output of a terminal, and with `follow` new output."""
    assert found.worker is not None
    ids = (found.session.id, found.worker.id)
    plain = PlainTextConverter(shows_colours())
    last = LastLines(tail)
    end = 0
    async for frame in client.output(*ids):
        _write(last.feed(frame.data if raw else plain.feed(frame.data)))
        end = frame.end
    _write(last.finish())
    if follow:
        async with client.terminal(*ids, after=end) as terminal:
            async for update in terminal:
                if isinstance(update, OutputFrame | HistoryFrame):
                    _write(update.data if raw else plain.feed(update.data))


def _write(data: bytes) -> None:
    """Write bytes to standard output and flush it."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
