"""`bullpen recordings`: check the files of a recording, or write them again."""

from pathlib import Path

import click

from ..client import Client, RebuildResult
from .find import find_session
from .output import print_json
from .verb import json_option, with_client
from .verb_group import VerbGroup

recordings = VerbGroup(help="Check the files of a recording, or write them again.")


@recordings.command()
@click.argument(
    "directory", type=click.Path(path_type=Path), help="A directory with events.jsonl and metadata.json."
)
@json_option
def check(directory: Path, json: bool) -> int:
    """Check whether a recording is complete, and list what is missing.

    \b
    Examples:
      bullpen recordings check ~/.local/share/bullpen/recordings/4c0f1f0e-3a52-4a0e-9d0b-6a5f1b1d2c01
    """
    from ..log.recording_directory import RecordingDirectory  # noqa: PLC0415

    recorded = RecordingDirectory(directory.expanduser())
    damage = recorded.describe_damage()
    if json:
        print_json({"events": len(recorded.events), "damage": damage})
    else:
        print(f"{len(recorded.events)} events, {'damaged' if damage else 'no damage'}")
        for sentence in damage:
            print(f"  {sentence}")
    recorded.close()
    return 1 if damage else 0


@recordings.command()
@click.argument("session", required=False, help="A title, an id, or its beginning; by default all.")
@json_option
def rebuild(session: str | None, json: bool) -> None:
    """Write the files of a recording again from the database.

    \b
    Examples:
      bullpen recordings rebuild
      bullpen recordings rebuild my-session
    """

    async def work(client: Client) -> RebuildResult:
        session_id = (await find_session(client, session)).id if session else None
        return await client.rebuild_recordings(session_id)

    rebuilt = with_client(work)
    if json:
        print_json(rebuilt)
    else:
        print(f"wrote {rebuilt.events} events of {rebuilt.sessions} sessions")
