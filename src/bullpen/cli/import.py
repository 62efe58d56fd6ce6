"""`bullpen import`: import a recording, or the sessions of a `sessions.json` file."""

import json as jsonlib
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import click

from ..client import Client, ImportResult
from ..domain.errors import Invalid
from ..log.recording_directory import MAX_METADATA_BYTES
from ..log.recording_store import METADATA
from ..log.zip_reader import ZipReader
from .confirm import confirm
from .output import print_json
from .text import home_relative, printable, short
from .verb import json_option, with_client


@click.command("import")
@click.argument(
    "file", type=click.Path(path_type=Path), help="A zip file of `bullpen export`, or a sessions.json."
)
@json_option
def import_(file: Path, json: bool) -> int:
    """Import a session that was exported, or the sessions that agent-console saved. Nothing is started.

    \b
    Examples:
      bullpen import my-session.zip
      bullpen import ~/.agent-console/sessions.json
    """
    recording = _recording(file) if is_zipfile(file.expanduser()) else None
    entries = [] if recording else _read_entries(file)

    async def work(client: Client) -> ImportResult:
        if recording:
            return await client.import_recording(*recording)
        return await _import_entries(client, entries)

    imported = with_client(work)
    if json:
        print_json(imported)
    else:
        _report(imported)
    return 0 if imported.taken or not imported.left else 1


async def _import_entries(client: Client, entries: list[Any]) -> ImportResult:
    """Import the entries. If directories are not allowed yet, ask the user once, and import the rest."""
    first = await client.import_sessions(entries)
    roots = sorted({each.allow_root for each in first.left if each.allow_root})
    names = ", ".join(printable(home_relative(root)) for root in roots)
    if not roots or not confirm(f"Allow sessions in {names}?", default=True):
        return first
    for root in roots:
        await client.add_root(root)
    second = await client.import_sessions(entries)
    new = [each for each in second.taken if not each.before]
    return ImportResult(taken=first.taken + new, left=second.left)


def _recording(file: Path) -> tuple[str, bytes]:
    """Return the session id and the bytes of a recording's zip file, or raise Invalid."""
    try:
        with open(file.expanduser(), "rb") as source:
            metadata = jsonlib.loads(_read_metadata(ZipReader(source)))
            source.seek(0)
            return str(metadata["id"]), source.read()
    except (Invalid, LookupError, TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"{file} is not a recording that bullpen export made: {error}") from None


def _read_metadata(archive: ZipReader) -> bytes:
    """Return `metadata.json` in the zip file of a recording; raise Invalid if it is too large.

    Raise ValueError if the zip file does not contain it.
    """
    [member] = [each for each in archive.members if each.name == METADATA]
    if member.size > MAX_METADATA_BYTES:
        raise Invalid(f"{METADATA} has at most {MAX_METADATA_BYTES >> 20} MiB")
    return b"".join(archive.read(member))


def _read_entries(file: Path) -> list[Any]:
    """Return the list in a `sessions.json` file, or raise Invalid."""
    try:
        entries = jsonlib.loads(file.expanduser().read_bytes())
    except OSError as error:
        raise Invalid(f"cannot read {file}: {error.strerror}") from None
    except ValueError as error:
        raise Invalid(f"{file} is neither a zip file of bullpen export nor JSON: {error}") from None
    if not isinstance(entries, list):
        raise Invalid(f"{file} is not a sessions.json: it does not contain a list of sessions")
    return entries


def _report(imported: ImportResult) -> None:
    """Print the imported sessions and the skipped entries."""
    for session in imported.taken:
        name = f"{session.title} ({short(session.session_id)})"
        if session.before:
            print(f"{name} was imported before")
        else:
            print(f"imported {name} with {session.workers} workers, all ended")
        for note in session.notes:
            print(f"  {note}")
    for entry in imported.left:
        print(f"skipped {entry.id}: {entry.reason}")
    if not imported.taken and not imported.left:
        print("the file contains no session")
