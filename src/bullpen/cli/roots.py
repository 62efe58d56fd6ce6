"""`bullpen roots`: list, add or remove the directories in which sessions are allowed."""

from pathlib import Path

import click

from ..client import Root
from .output import print_json
from .session_place import absolute
from .table import TableColumn, path_column, print_table
from .text import home_relative
from .verb import json_option, with_client
from .verb_group import VerbGroup

roots = VerbGroup(help="Allow sessions in a directory, or list and remove such directories.")

_COLUMNS = (path_column("PATH", least=12), TableColumn("WHY"))
_REASONS = {
    "setting": "the setting workspace_root",
    "scratch": "sessions without a directory",
    "repository": "a registered repository",
    "added": "you added it",
}


@roots.command()
@json_option
def ls(json: bool) -> None:
    """List the directories in which sessions are allowed, with all directories below them."""
    listed = with_client(lambda client: client.roots())
    if json:
        print_json(listed)
    else:
        print_table(_COLUMNS, [_row(root) for root in listed.roots])


@roots.command()
@click.argument(
    "directory",
    type=click.Path(path_type=Path),
    default=".",
    help="The directory to allow; by default this one.",
)
@click.option(
    "--force", is_flag=True, help="Allow even the home directory, or another that many programs use."
)
@json_option
def add(directory: Path, force: bool, json: bool) -> None:
    """Allow sessions in a directory and in all directories below it.

    \b
    Examples:
      bullpen roots add
      bullpen roots add /srv/app
    """
    root = with_client(lambda client: client.add_root(str(absolute(directory)), force=force))
    if json:
        print_json(root)
    else:
        print(f"sessions are allowed in {home_relative(root.path)}")


@roots.command()
@click.argument("directory", type=click.Path(path_type=Path), help="A directory that was added.")
def rm(directory: Path) -> None:
    """Allow no new sessions in a directory. Running sessions continue."""
    with_client(lambda client: client.remove_root(str(absolute(directory))))
    print(f"no new sessions in {home_relative(str(absolute(directory)))}")


def _row(root: Root) -> list[str]:
    """Return the table row of a workspace root."""
    return [home_relative(root.path), _REASONS.get(root.source, root.source)]
