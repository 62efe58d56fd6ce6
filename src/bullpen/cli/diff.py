"""`bullpen diff`: show the changes in a session's workspace."""

import click

from ..client import Client, Diff, FileDiff
from .find import find_session
from .output import print_json
from .text import shows_colours
from .verb import json_option, session_argument, with_client

_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
_HEADER_STARTS = (
    "diff ",
    "index ",
    "--- ",
    "+++ ",
    "new file",
    "deleted file",
    "rename ",
    "similarity ",
    "Binary ",
)


@click.command()
@session_argument
@click.option("--base", help="Compare with the commit where the branch left this one.")
@click.option("--stat", is_flag=True, help="Only list the files and count the lines.")
@json_option
def diff(session: str, base: str | None, stat: bool, json: bool) -> None:
    """Show the changes in a session's workspace.

    These are all changes since its branch left the main branch: committed, staged, unstaged and new files.

    \b
    Examples:
      bullpen diff my-session
      bullpen diff my-session --stat
      bullpen diff my-session --base release | less -R
    """

    async def work(client: Client) -> Diff:
        return await client.diff((await find_session(client, session)).id, base=base)

    found = with_client(work)
    if json:
        print_json(found)
    elif stat:
        _print_counts(found)
    else:
        _print_patches(found)


def _print_counts(found: Diff) -> None:
    """Print the number of changed lines of each file."""
    width = max((len(file.path) for file in found.files), default=0)
    for file in found.files:
        print(f"{file.path:{width}}  {_counts(file)}")
    files = "1 file" if len(found.files) == 1 else f"{len(found.files)} files"
    print(f"{files}, +{found.additions} -{found.deletions}")
    if found.note:
        print(found.note)


def _counts(file: FileDiff) -> str:
    """Return the changed lines and the status of a file."""
    counts = "binary" if file.binary else f"+{file.additions or 0} -{file.deletions or 0}"
    return f"{counts}  {file.status}" + (f" ({file.note})" if file.note else "")


def _print_patches(found: Diff) -> None:
    """Print the patch of each file, coloured on a terminal."""
    colourful = shows_colours()
    for file in found.files:
        for line in file.patch.splitlines():
            print(_painted(line) if colourful else line)
        if file.note:
            print(f"{file.path}: {file.note}")
    if found.note:
        print(found.note)


def _painted(line: str) -> str:
    """Return a line of a patch in the colours of git."""
    if line.startswith(_HEADER_STARTS):
        return f"{_BOLD}{line}{_PLAIN}"
    colour = _COLOURS.get(line[:1])
    return f"{colour}{line}{_PLAIN}" if colour else line
