"""Which files git does not carry into a new worktree, and a person wants there all the same."""

from collections.abc import Sequence

from ..domain.errors import Invalid
from .places import GitDirectories
from .run import run_git

FILE = ".worktreeinclude"
MOST_PATTERNS = 1000


def parse_patterns(text: str) -> list[str]:
    """The patterns of a `.worktreeinclude`, written as in a `.gitignore`."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    patterns = [line for line in lines if line.strip() and not line.startswith("#")]
    if len(patterns) > MOST_PATTERNS:
        raise Invalid(f"{FILE} has more than {MOST_PATTERNS} patterns")
    return patterns


async def included_files(repository: GitDirectories, patterns: Sequence[str]) -> list[str]:
    """The untracked files that match, ignored or not, relative to the work tree."""
    if not patterns:
        return []
    excludes = [f"--exclude={pattern}" for pattern in patterns]
    said = await run_git(repository, "ls-files", "--others", "--ignored", "-z", *excludes, timeout=120)
    names = said.output.decode("utf-8", "surrogateescape").split("\0")
    return [name for name in names if name and not name.endswith("/")]  # a slash: a repository inside
