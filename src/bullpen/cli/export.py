"""`bullpen export`: write a session to a file."""

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from ..client import Client
from ..domain.errors import Invalid
from .find import SessionMatch, find
from .values import Choice
from .verb import target_argument, with_client

_EXTENSIONS = {"jsonl": "jsonl", "markdown": "md", "zip": "zip", "cast": "cast"}


@click.command()
@target_argument
@click.option("--format", type=Choice(_EXTENSIONS), default="zip", help="The format of the file.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The file to write; - for standard output.",
)
@click.option("--force", "-f", is_flag=True, help="Replace a file that exists.")
@click.option("--redact", is_flag=True, help="Leave out what looks like a secret.")
def export(target: str, format: str, output: Path | None, force: bool, redact: bool) -> None:
    """Write a session to a file: all of it (zip), its events (jsonl), its messages (markdown) or a terminal.

    \b
    Examples:
      bullpen export my-session
      bullpen export my-session --format markdown -o - | less
      bullpen export my-session/terminal --format cast && asciinema play my-session.cast
    """

    async def work(client: Client) -> None:
        found = await find(client, target)
        if str(output) == "-":
            await _write(client, found, format, redact, sys.stdout.buffer)
            return
        file = output or Path(f"{_file_name(found.session.title)}.{_EXTENSIONS[format]}")
        with _atomic_file(file.expanduser(), force) as out:
            await _write(client, found, format, redact, out)
        print(f"wrote {file}")

    with_client(work)


async def _write(client: Client, found: SessionMatch, format: str, redact: bool, out: BinaryIO) -> None:
    """Write the exported session or terminal to an open file."""
    worker_id = found.worker.id if found.worker else None
    async for chunk in client.export(found.session.id, format, redact=redact, worker_id=worker_id):
        out.write(chunk)


@contextmanager
def _atomic_file(file: Path, force: bool) -> Iterator[BinaryIO]:
    """Yield a temporary file that becomes `file` when the block ends without an error.

    Raise Invalid if it cannot be written, or if it exists and `force` is not set.
    """
    if file.exists() and not force:
        raise Invalid(f"{file} exists; replace it with --force, or name another file with --output")
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with open(part, "xb") as out:
            yield out
        os.replace(part, file)
    except OSError as error:
        raise Invalid(f"cannot write {file}: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


def _file_name(title: str) -> str:
    """Return a title as a file name that needs no quotes in a shell."""
    name = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in title)
    return name.strip("-.")[:80] or "session"
