"""`bullpen repo`: register, list, change or unregister git repositories."""

import os
from pathlib import Path

import click

from ..client import Client, Repository
from ..domain.errors import Invalid
from .find import find_repository
from .output import print_json
from .table import TableColumn, path_column, print_table
from .text import age, home_relative, short
from .values import Number
from .verb import json_option, quiet_option, with_client
from .verb_group import VerbGroup

repo = VerbGroup(help="Register, list, change or unregister git repositories.")

_COLUMNS = (
    TableColumn("NAME", least=12),
    TableColumn("ID"),
    path_column("PATH", least=12),
    TableColumn("AGE"),
)


@repo.command()
@click.argument(
    "path", type=click.Path(path_type=Path), default=".", help="Its directory; by default this one."
)
@click.option("--name", "-n", help="Its name.")
@json_option
@quiet_option
def add(path: Path, name: str | None, json: bool, quiet: bool) -> None:
    """Register a git repository.

    \b
    Examples:
      bullpen repo add
      bullpen repo add ~/src/site --name site
    """
    directory = os.path.abspath(path.expanduser())
    repository = with_client(lambda client: client.add_repository(directory, name=name))
    if json:
        print_json(repository)
    else:
        print(repository.id if quiet else f"registered {repository.name} ({short(repository.id)})")


@repo.command()
@json_option
@quiet_option
def ls(json: bool, quiet: bool) -> None:
    """List the repositories."""
    repositories = with_client(lambda client: client.repositories())
    if json:
        print_json({"repositories": repositories})
    elif quiet:
        for repository in repositories:
            print(repository.id)
    elif repositories:
        rows = [
            [each.name, short(each.id), home_relative(each.path), age(each.created_at)]
            for each in repositories
        ]
        print_table(_COLUMNS, rows)
    else:
        print("no repositories; register one with: bullpen repo add <directory>")


@repo.command("set")
@click.argument("repository", help="A name, a path, an id or its beginning.")
@click.option("--name", "-n", help="Its new name.")
@click.option("--agent", help="Its default agent; empty for none.")
@click.option("--env", multiple=True, help="NAME=VALUE for its programs; NAME= removes one.")
@click.option("--setup", help="A command that runs in every new worktree.")
@click.option("--cleanup", help="A command that runs before a worktree is removed.")
@click.option("--queue/--no-queue", default=None, help="Whether messages may wait for its agents.")
@click.option("--queue-delay", type=Number(float), metavar="SECONDS", help="The delay before each message.")
@click.option("--queue-size", type=Number(int), metavar="NUMBER", help="The most messages that may wait.")
@json_option
def set_(
    repository: str,
    name: str | None,
    agent: str | None,
    env: tuple[str, ...],
    setup: str | None,
    cleanup: str | None,
    queue: bool | None,
    queue_delay: float | None,
    queue_size: int | None,
    json: bool,
) -> None:
    """Change the settings of a repository, which apply to all its sessions and worktrees.

    \b
    Examples:
      bullpen repo set site --name website
      bullpen repo set site --setup "npm ci" --agent claude
      bullpen repo set site --env DATABASE_URL=postgresql://localhost/test
      bullpen repo set site --queue-size 50 --queue-delay 5
    """
    options = {"enabled": queue, "delay_seconds": queue_delay, "max_size": queue_size}
    queue_settings = {key: value for key, value in options.items() if value is not None}
    variables = dict(map(_parse_variable, env)) if env else None

    async def work(client: Client) -> Repository:
        found = await find_repository(client, repository)
        return await client.edit_repository(
            found.id,
            name=name,
            agent_id=agent,
            env=variables,
            setup=setup,
            cleanup=cleanup,
            queue=queue_settings or None,
        )

    edited = with_client(work)
    if json:
        print_json(edited)
    else:
        print(f"changed {edited.name} ({short(edited.id)})")


def _parse_variable(text: str) -> tuple[str, str | None]:
    """Return name and value of NAME=VALUE, or raise Invalid; the value None (for an empty one) removes it."""
    name, equals, value = text.partition("=")
    if not equals:
        raise Invalid(f"{text} is not NAME=VALUE")
    return name, value or None


@repo.command()
@click.argument("repository", help="A name, a path, an id or its beginning.")
def rm(repository: str) -> None:
    """Unregister a repository. Its files stay."""

    async def work(client: Client) -> Repository:
        found = await find_repository(client, repository)
        await client.delete_repository(found.id)
        return found

    found = with_client(work)
    print(f"unregistered {found.name}; its files are still in {home_relative(found.path)}")
