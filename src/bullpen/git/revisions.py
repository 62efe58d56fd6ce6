"""Resolve a revision to a commit."""

from .git_directories import GitDirectories
from .run import run_git


async def find_commit(git_dirs: GitDirectories, revision: str) -> str | None:
    """Return the id of the commit that a revision names; None if it names no commit."""
    result = await run_git(
        git_dirs, "rev-parse", "--verify", "--quiet", refs=[f"{revision}^{{commit}}"], accept=(0, 1, 128)
    )
    return None if result.code else result.output.decode().split()[-1]
