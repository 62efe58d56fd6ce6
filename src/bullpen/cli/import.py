"""`bullpen import`: a recording, or the sessions of a `sessions.json`."""

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any
from zipfile import is_zipfile

import typer

from ..client import Client, ImportResult
from ..domain.errors import Invalid
from ..log.recorded import MAX_METADATA_BYTES
from ..log.recordings import METADATA
from ..log.zip_reader import ZipReader
from .output import print_json
from .text import short
from .verb import AsJson, new_app, with_client

app = new_app()


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A zip of `bullpen export`, or a sessions.json.")],
    json: AsJson = False,
) -> int:
    """Take in a session exported elsewhere, or what agent-console saved; nothing is started.

    \b
    Examples:
      bullpen import my-session.zip
      bullpen import ~/.agent-console/sessions.json
    """
    recording = _recording(file) if is_zipfile(file.expanduser()) else None
    entries = [] if recording else _read(file)

    async def work(client: Client) -> ImportResult:
        return (
            await client.import_recording(*recording) if recording else await client.import_sessions(entries)
        )

    imported = with_client(work)
    if json:
        print_json(imported)
    else:
        _report(imported)
    return 0 if imported.taken or not imported.left else 1


def _recording(file: Path) -> tuple[str, bytes]:
    """The session a zip is the recording of, and the zip."""
    try:
        with open(file.expanduser(), "rb") as source:
            metadata = jsonlib.loads(_metadata(ZipReader(source)))
            source.seek(0)
            return str(metadata["id"]), source.read()
    except (Invalid, LookupError, TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"{file} is not a recording that bullpen export made: {error}") from None


def _metadata(archive: ZipReader) -> bytes:
    [member] = [each for each in archive.members if each.name == METADATA]
    if member.size > MAX_METADATA_BYTES:
        raise Invalid(f"{METADATA} has at most {MAX_METADATA_BYTES >> 20} MiB")
    return b"".join(archive.read(member))


def _read(file: Path) -> list[Any]:
    try:
        entries = jsonlib.loads(file.expanduser().read_bytes())
    except OSError as error:
        raise Invalid(f"cannot read {file}: {error.strerror}") from None
    except ValueError as error:
        raise Invalid(f"{file} is neither a zip of bullpen export nor JSON: {error}") from None
    if not isinstance(entries, list):
        raise Invalid(f"{file} is not a sessions.json: that is a list of sessions")
    return entries


def _report(imported: ImportResult) -> None:
    for taken in imported.taken:
        print(f"took {taken.title} ({short(taken.session_id)}) with {taken.workers} workers, all ended")
        for note in taken.notes:
            print(f"  {note}")
    for left in imported.left:
        print(f"left {left.id}: {left.reason}")
    if not imported.taken and not imported.left:
        print("there is no session in it")
