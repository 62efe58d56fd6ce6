"""Where a new session lives: a directory, of a registered repository or not, or a worktree of its own."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ..client import Client, Session
from ..domain.errors import Forbidden, Invalid
from .confirm import confirm
from .find import find_repository_at
from .text import home_relative, printable

InWorktree = Annotated[bool, typer.Option("--worktree", "-w", help="In a worktree of its own.")]
Branch = Annotated[
    str | None, typer.Option("--branch", help="The worktree's branch, new or not; else one is named for you.")
]
Base = Annotated[str | None, typer.Option("--base", help="Where the worktree's new branch begins.")]


def absolute(directory: Path) -> Path:
    return Path(os.path.abspath(directory.expanduser()))


async def create_session(client: Client, **wanted: Any) -> Session:
    """Create a session. If its directory is not allowed yet, ask the user once and remember the answer."""
    try:
        return await client.create_session(**wanted)
    except Forbidden as refused:
        root = refused.details.get("allowRoot") if isinstance(refused.details, dict) else None
        if root is None or not confirm(f"Allow sessions in {printable(home_relative(root))}?", default=True):
            raise  # without a terminal to ask on, the refusal says what to do
    await client.add_root(root)
    return await client.create_session(**wanted)


async def place(
    client: Client,
    directory: Path | None,
    in_worktree: bool,
    branch: str | None,
    base: str | None,
    prompt: str | None,
) -> dict[str, Any]:
    """Return what `create_session` is told about it.

    Sessions do not live in the home directory itself. Started from there, a session gets a new directory.
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
