"""`bullpen replay`: a session once more, in this terminal."""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Annotated, BinaryIO
from zipfile import ZipFile

import typer

from ..client import Client
from .find import SessionMatch, find
from .playing.show import TerminalPlayer
from .verb import new_app, with_client

app = new_app()


@app.command()
def replay(
    target: Annotated[str, typer.Argument(metavar="SESSION|WORKER|DIR", help="What to play.")],
    *,
    speed: Annotated[float, typer.Option("--speed", "-s", min=0.01, help="Times as fast.")] = 1.0,
    idle: Annotated[
        float,
        typer.Option("--idle", "-i", min=0.0, metavar="SECONDS", help="The longest silence; 0: as it was."),
    ] = 2.0,
    seq: Annotated[int, typer.Option("--from", metavar="SEQ", min=0, help="Begin with this event.")] = 0,
) -> None:
    """Play what happened in a session: its events as lines, and what its terminals said.

    \b
    Keys:
      space            pause and go on
      right, left      5 seconds on or back
      . and n          one moment on while paused; the next prompt or error
      + and -          faster, slower
      0                from the beginning
      q                leave

    A worker's name plays its terminal alone, as it looked. A directory is one with events.jsonl.

    \b
    Examples:
      bullpen replay my-session
      bullpen replay my-session/terminal --speed 4
      bullpen replay ./unpacked --idle 0
    """
    from ..log.replay import PlaybackPace, ReplayPlayer  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="bullpen-replay-") as room:
        directory, worker_id = _place(target, Path(room))
        player = ReplayPlayer.open(directory)
        try:
            for sentence in player.recorded.describe_damage():
                print(f"bullpen: {sentence}", file=sys.stderr)
            if seq:
                player.seek_seq(seq)
            asyncio.run(TerminalPlayer(player, PlaybackPace(speed, idle or None), worker_id).run())
        finally:
            player.close()


def _place(target: str, room: Path) -> tuple[Path, str | None]:
    """Where the recording is: a directory, or what the server gives us of a session."""
    directory = Path(target).expanduser()
    if (directory / "events.jsonl").is_file():
        return directory, None

    with open(room / "zip", "xb") as out:
        found = with_client(lambda client: _fetch(client, target, out))
    with ZipFile(room / "zip") as archive:
        archive.extractall(room / "recording")
    return room / "recording", found.worker.id if found.worker else None


async def _fetch(client: Client, target: str, out: BinaryIO) -> SessionMatch:
    found = await find(client, target)
    async for piece in client.export(found.session.id, "zip"):
        out.write(piece)
    return found
