"""`bullpen replay`: replay a session in the terminal."""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO
from zipfile import ZipFile

import click

from ..client import Client
from .find import SessionMatch, find
from .playing.show import TerminalPlayer
from .values import Number
from .verb import with_client


@click.command()
@click.argument("target", metavar="SESSION|WORKER|DIR", help="The recording.")
@click.option(
    "--speed", "-s", type=Number(float, minimum=0.01), default=1.0, help="The factor by which to speed up."
)
@click.option(
    "--idle",
    "-i",
    type=Number(float, minimum=0.0),
    default=2.0,
    metavar="SECONDS",
    help="Shorten longer pauses; 0 keeps them.",
)
@click.option(
    "--from", "seq", type=Number(int, minimum=0), default=0, metavar="SEQ", help="Start at this event."
)
def replay(target: str, speed: float, idle: float, seq: int) -> None:
    """Replay a session: its events as lines, and the output of its terminals.

    \b
    Keys:
      space            pause or continue
      right, left      5 seconds forward or back
      . and n          one step while paused; the next prompt or error
      + and -          faster, slower
      0                from the start
      q                quit

    The name of a worker replays only its terminal, as it looked. A directory must contain events.jsonl.

    \b
    Examples:
      bullpen replay my-session
      bullpen replay my-session/terminal --speed 4
      bullpen replay ./unpacked --idle 0
    """
    from ..log.replay import PlaybackPace, ReplayPlayer  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="bullpen-replay-") as temporary:
        directory, worker_id = _locate(target, Path(temporary))
        player = ReplayPlayer.open(directory)
        try:
            for sentence in player.recorded.describe_damage():
                print(f"bullpen: {sentence}", file=sys.stderr)
            if seq:
                player.seek_seq(seq)
            asyncio.run(TerminalPlayer(player, PlaybackPace(speed, idle or None), worker_id).run())
        finally:
            player.close()


def _locate(target: str, temporary: Path) -> tuple[Path, str | None]:
    """Return the directory of a recording, downloaded if `target` names a session, and the named worker."""
    directory = Path(target).expanduser()
    if (directory / "events.jsonl").is_file():
        return directory, None

    with open(temporary / "zip", "xb") as out:
        found = with_client(lambda client: _download(client, target, out))
    with ZipFile(temporary / "zip") as archive:
        archive.extractall(temporary / "recording")
    return temporary / "recording", found.worker.id if found.worker else None


async def _download(client: Client, target: str, out: BinaryIO) -> SessionMatch:
    """Write the zip file of the named session, and return the session."""
    found = await find(client, target)
    async for chunk in client.export(found.session.id, "zip"):
        out.write(chunk)
    return found
