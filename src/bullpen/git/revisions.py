"""Which commit a name stands for."""

from .places import GitDirectories
from .run import run_git


async def find_commit(place: GitDirectories, revision: str) -> str | None:
    """The commit a revision stands for; None when there is none."""
    said = await run_git(
        place, "rev-parse", "--verify", "--quiet", refs=[f"{revision}^{{commit}}"], accept=(0, 1, 128)
    )
    return None if said.code else said.output.decode().split()[-1]
