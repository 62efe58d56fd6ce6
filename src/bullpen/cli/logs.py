"""`bullpen logs`: what a terminal printed, or what happened in a session or to an agent."""

import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated

import typer

from ..client import Client, Event, HistoryFrame, OutputFrame
from ..domain.errors import Invalid
from .event_line import describe
from .find import SessionMatch, find
from .output import print_json_line
from .tail import LastLines
from .terminal.plain import PlainTextConverter
from .text import is_colourful
from .verb import AsJson, Target, new_app, with_client

app = new_app()

_PAGE = 1000


@app.command()
def logs(
    target: Target,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as more comes.")] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", "-n", min=0, metavar="LINES", help="Only the last lines.")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="A terminal's very bytes, which a terminal may obey.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Print a terminal's output, or a session's or agent's events.

    \b
    Examples:
      bullpen logs my-session
      bullpen logs my-session/claude --tail 20
      bullpen logs my-session/terminal --tail 20
      bullpen logs -f my-session/terminal | grep -i error
    """

    async def work(client: Client) -> None:
        found = await find(client, target)
        if found.worker is not None and found.worker.has_terminal:
            if json:
                raise Invalid("a terminal prints text, not JSON; the session has events: leave out the role")
            await _print_output(client, found, follow, tail, raw)
        else:
            if raw:
                raise Invalid("only a terminal has raw bytes; name one as session/role")
            await _print_events(client, found, follow, tail, json)

    with_client(work)


async def _print_events(
    client: Client, found: SessionMatch, follow: bool, tail: int | None, json: bool
) -> None:
    show = print_json_line if json else _print_event
    seq = found.session.last_seq
    async for event in _past(client, found, tail):
        show(event)
        seq = max(seq, event.seq)
    if follow:
        async with aclosing(client.follow(found.session.id, seq)) as events:
            async for event in events:
                if _is_of(event, found):
                    show(event)


async def _past(client: Client, found: SessionMatch, tail: int | None) -> AsyncIterator[Event]:
    """What has happened, or the end of it; where only one worker is meant, what happened to that."""
    last = found.session.last_seq
    seq = max(0, last - tail) if tail is not None and found.worker is None else 0
    kept: deque[Event] = deque(maxlen=tail)
    while seq < last:
        page = await client.events(found.session.id, after=seq, limit=_PAGE)
        kept += [event for event in page.events if _is_of(event, found)]
        seq = page.events[-1].seq
        while tail is None and kept:
            yield kept.popleft()
    for event in kept:
        yield event


def _is_of(event: Event, found: SessionMatch) -> bool:
    return found.worker is None or event.worker_id == found.worker.id


def _print_event(event: Event) -> None:
    print(describe(event), flush=True)


async def _print_output(
    client: Client, found: SessionMatch, follow: bool, tail: int | None, raw: bool
) -> None:
    assert found.worker is not None
    where = (found.session.id, found.worker.id)
    plain = PlainTextConverter(is_colourful())
    last = LastLines(tail)
    end = 0
    async for piece in client.output(*where):
        _write(last.feed(piece.data if raw else plain.feed(piece.data)))
        end = piece.end
    _write(last.rest())
    if follow:
        async with client.terminal(*where, after=end) as terminal:
            async for frame in terminal:
                if isinstance(frame, OutputFrame | HistoryFrame):
                    _write(frame.data if raw else plain.feed(frame.data))


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
