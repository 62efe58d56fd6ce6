"""`bullpen worktree`: add, list, remove or restore git worktrees of a repository."""

import asyncio
import shlex
import sys
from pathlib import Path

import click

from ..client import Client, Repository, Worktree, WorktreeList
from ..domain.errors import Conflict, NotFound
from .find import find_repository, find_repository_at
from .output import print_json
from .session_place import absolute
from .table import TableColumn, path_column, print_table
from .text import age, home_relative, printable
from .verb import json_option, quiet_option, with_client
from .verb_group import VerbGroup

worktree = VerbGroup(help="Add, list, remove or restore worktrees of a repository.")

_COLUMNS = (
    TableColumn("NAME", least=12),
    TableColumn("BRANCH", least=12),
    TableColumn("STATE"),
    path_column("PATH", least=12),
)
_POLL_SECONDS = 1.0

worktree_argument = click.argument("worktree", metavar="WORKTREE", help="Its name; see: bullpen worktree ls")
repository_argument = click.argument(
    "repository", required=False, help="Its name, path or id; by default that of this directory."
)


@worktree.command()
@click.argument("branch", required=False, help="The branch; by default a generated name.")
@repository_argument
@click.option("--base", "-b", help="The commit where a new branch starts.")
@click.option("--name", "-n", help="The name of the worktree.")
@click.option("--existing", "-e", is_flag=True, help="The branch exists already.")
@json_option
@quiet_option
def add(
    branch: str | None,
    repository: str | None,
    base: str | None,
    name: str | None,
    existing: bool,
    json: bool,
    quiet: bool,
) -> None:
    """Create a worktree for a new or an existing branch.

    \b
    Examples:
      bullpen worktree add fix-login
      bullpen worktree add fix-login ~/src/site --base origin/main
      bullpen worktree add release-2 --existing
    """

    async def work(client: Client) -> Worktree:
        found = await _repository(client, repository)
        adding = client.add_worktree(found.id, branch=branch, base=base, name=name, existing=existing)
        if json or quiet or not sys.stderr.isatty():
            return await adding
        return await _show_progress(client, found.id, asyncio.ensure_future(adding))

    made = with_client(work)
    if json:
        print_json(made)
    else:
        print(made.path if quiet else f"created {made.name} in {home_relative(made.path)}")


@worktree.command()
@repository_argument
@json_option
@quiet_option
def ls(repository: str | None, json: bool, quiet: bool) -> None:
    """List the worktrees, and what can be restored."""

    async def work(client: Client) -> WorktreeList:
        return await client.worktrees((await _repository(client, repository)).id)

    found = with_client(work)
    if json:
        print_json(found)
    elif quiet:
        print("\n".join(each.name for each in found.worktrees))
    else:
        _print(found, repository)


@worktree.command()
@worktree_argument
@repository_argument
@click.option("--force", "-f", is_flag=True, help="Remove it even if work would be lost.")
def rm(worktree: str, repository: str | None, force: bool) -> None:
    """Remove a worktree, which can be restored for 7 days. Its branch stays."""

    async def work(client: Client) -> None:
        await client.remove_worktree((await _repository(client, repository)).id, worktree, force=force)

    try:
        with_client(work)
    except Conflict as refused:
        _print_losses(refused)
        raise
    print(f"removed {worktree}; restore it within 7 days with: {_restore_command(worktree, repository)}")


@worktree.command()
@worktree_argument
@repository_argument
@json_option
def restore(worktree: str, repository: str | None, json: bool) -> None:
    """Restore a worktree that was removed, with all its files."""

    async def work(client: Client) -> Worktree:
        return await client.restore_worktree((await _repository(client, repository)).id, worktree)

    restored = with_client(work)
    if json:
        print_json(restored)
    else:
        print(f"restored {restored.name} in {home_relative(restored.path)}")


def _print(found: WorktreeList, repository: str | None) -> None:
    """Print the table of worktrees, and the removed ones."""
    rows = [
        [each.name, each.branch or "-", _state(each), home_relative(each.path)] for each in found.worktrees
    ]
    print_table(_COLUMNS, rows)
    for trashed in found.trash:
        command = _restore_command(trashed.name, repository)
        print(f"removed {age(trashed.removed_at)} ago: {trashed.name}; restore it with: {command}")


def _restore_command(name: str, repository: str | None) -> str:
    """Return the command that restores a worktree of the repository that the user named."""
    return shlex.join(("bullpen", "worktree", "restore", name, *([repository] if repository else [])))


async def _repository(client: Client, name: str | None) -> Repository:
    """Return the repository with a name or a directory, by default that of the current directory."""
    directory = absolute(Path(name or "."))
    if name is None:
        return await find_repository_at(client, directory)
    try:
        return await find_repository(client, name)
    except NotFound:
        if directory.is_dir():
            return await find_repository_at(client, directory)
        raise


async def _show_progress(client: Client, repo_id: str, adding: "asyncio.Future[Worktree]") -> Worktree:
    """Show the progress that git reports, on one line, until the worktree is created."""
    while not (await asyncio.wait([adding], timeout=_POLL_SECONDS))[0]:
        for each in (await client.worktrees(repo_id)).making:
            print(f"\r\x1b[K{printable(each.progress)}", end="", file=sys.stderr, flush=True)
    print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return await adding


def _state(worktree: Worktree) -> str:
    """Return the state of a worktree, such as clean, 2 ahead."""
    if worktree.problem:
        return worktree.problem
    words = ["changed" if worktree.dirty else "clean"]
    words += [
        f"{count} {word}" for count, word in ((worktree.ahead, "ahead"), (worktree.behind, "behind")) if count
    ]
    return ", ".join(words)


def _print_losses(refused: Conflict) -> None:
    """Print the changes and commits that would be lost, one per line."""
    details = refused.details if isinstance(refused.details, dict) else {}
    for line in (*details.get("changes", ()), *details.get("commits", ())):
        print(f"  {printable(str(line))}", file=sys.stderr)
    if output := details.get("output"):
        print(printable(str(output)), file=sys.stderr)
