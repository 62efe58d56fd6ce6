"""Find the registered repository that a directory belongs to, by git's own files and not by its path."""

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from ..domain.records import Repository
from ..git.discovery import find_git_directories
from ..sandbox.roots import WorkspaceRoots
from ..store.records import RecordStore
from .create import NewSession
from .worktrees import RepositoryWorktrees


async def with_repository(
    roots: WorkspaceRoots, records: RecordStore, worktrees: RepositoryWorktrees, order: NewSession
) -> NewSession:
    """Return the order with the repository and worktree its directory belongs to; unchanged if there is none.

    The requested directory stays. A repository inside another one is not part of it, registered or not.
    """
    if order.repo_id or not order.location_path:
        return order
    directory = roots.directory(order.location_path)
    repositories = await records.repositories()
    if found := _of_work_tree(repositories, directory):
        return replace(order, repo_id=found.id)
    place = find_git_directories(directory)
    for each in repositories:
        if place is not None and worktrees.settings(each.id).git_dir == str(place.common_dir):
            return replace(order, repo_id=each.id, worktree_id=place.git_dir.name)
    return order


def _of_work_tree(repositories: Iterable[Repository], directory: Path) -> Repository | None:
    """Return the repository whose work tree contains the directory, or None."""
    around = (each for each in (directory, *directory.parents) if os.path.lexists(each / ".git"))
    nearest = str(next(around, ""))
    return next((each for each in repositories if each.path == nearest), None)
