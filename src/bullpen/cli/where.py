"""Where a new session lives: a directory, of a registered repository or not, or a worktree of its own."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ..client import Client
from ..domain.errors import Invalid
from .find import find_repository_at

InWorktree = Annotated[bool, typer.Option("--worktree", "-w", help="In a worktree of its own.")]
Branch = Annotated[
    str | None, typer.Option("--branch", help="The worktree's branch, new or not; else one is named for you.")
]
Base = Annotated[str | None, typer.Option("--base", help="Where the worktree's new branch begins.")]


def absolute(directory: Path) -> Path:
    return Path(os.path.abspath(directory.expanduser()))


async def place(
    client: Client,
    directory: Path,
    in_worktree: bool,
    branch: str | None,
    base: str | None,
    prompt: str | None,
) -> dict[str, Any]:
    """What `create_session` is told about it."""
    path = absolute(directory)
    if not (in_worktree or branch):
        if base:
            raise Invalid("--base is for a new worktree; add --worktree")
        return {"location_path": str(path), "find_repository": True}
    repository = await find_repository_at(client, path)
    mode = "either" if branch and not base else "new"
    worktree = {"mode": mode, "branch": branch, "base": base, "prompt": prompt}
    return {"repo_id": repository.id, "worktree": worktree}
