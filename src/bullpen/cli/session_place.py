"""Choose the directory or the worktree of a new session from options of the command line."""

import os
from pathlib import Path
from typing import Any

import click

from ..client import Client, Session
from ..domain.errors import Invalid
from .find import find_repository_at
from .remedies import with_remedies

worktree_option = click.option("--worktree", "-w", is_flag=True, help="Create a worktree for it.")
branch_option = click.option(
    "--branch", help="The worktree's branch, new or existing; by default a generated name."
)
base_option = click.option("--base", help="The commit where the new branch starts.")


def absolute(directory: Path) -> Path:
    """Return the absolute path of a directory, with ~ expanded and symbolic links kept."""
    return Path(os.path.abspath(directory.expanduser()))


async def create_session(client: Client, **fields: Any) -> Session:
    """Create a session; if it is refused for a reason that the user can remove, ask."""
    return await with_remedies(client, lambda: client.create_session(**fields))


async def session_location(
    client: Client,
    directory: Path | None,
    in_worktree: bool,
    branch: str | None,
    base: str | None,
    prompt: str | None,
) -> dict[str, Any]:
    """Return the arguments of `create_session` for the directory or the worktree.

    Raise Invalid for a base without a worktree.

    The server does not allow the home directory itself: a session started from there gets a new directory.
    """
    path = absolute(directory or Path("."))
    if not (in_worktree or branch):
        if base:
            raise Invalid("--base is for a new worktree; add --worktree")
        if directory is None and path == absolute(Path("~")):
            return {}
        return {"location_path": str(path), "find_repository": True}
    repository = await find_repository_at(client, path)
    mode = "either" if branch and not base else "new"
    worktree = {"mode": mode, "branch": branch, "base": base, "prompt": prompt}
    return {"repo_id": repository.id, "worktree": worktree}
