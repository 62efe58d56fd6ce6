"""`bullpen logs`: what a worker printed, or what happened in a session."""

import sys
from contextlib import aclosing
from typing import Annotated

import typer

from ..client import Client, Event, History, Output
from .event_line import describe
from .find import Found, find
from .output import print_json_line
from .tail import Tail
from .terminal.plain import Plain
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
    """Print what a worker printed, or a session's events.

    \b
    Examples:
      bullpen logs my-session
      bullpen logs my-session/terminal --tail 20
      bullpen logs -f my-session/terminal | grep -i error
    """

    async def work(client: Client) -> None:
        found = await find(client, target)
        if found.worker is None:
            await _print_events(client, found, follow, tail, json)
        else:
            await _print_output(client, found, follow, tail, raw)

    with_client(work)


async def _print_events(client: Client, found: Found, follow: bool, tail: int | None, json: bool) -> None:
    session = found.session
    seq = max(0, session.last_seq - tail) if tail is not None else 0
    show = print_json_line if json else _print_event
    while seq < session.last_seq:
        page = await client.events(session.id, after=seq, limit=_PAGE)
        for event in page.events:
            show(event)
        seq = page.events[-1].seq
    if follow:
        async with aclosing(client.follow(session.id, seq)) as events:
            async for event in events:
                show(event)


def _print_event(event: Event) -> None:
    print(describe(event), flush=True)


async def _print_output(client: Client, found: Found, follow: bool, tail: int | None, raw: bool) -> None:
    assert found.worker is not None
    where = (found.session.id, found.worker.id)
    plain = Plain(is_colourful())
    last = Tail(tail)
    end = 0
    async for piece in client.output(*where):
        _write(last.feed(piece.data if raw else plain.feed(piece.data)))
        end = piece.end
    _write(last.rest())
    if follow:
        async with client.terminal(*where, after=end) as terminal:
            async for frame in terminal:
                if isinstance(frame, Output | History):
                    _write(frame.data if raw else plain.feed(frame.data))


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
