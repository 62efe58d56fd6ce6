"""Find the untracked files that a new worktree gets as copies, by the patterns in `.worktreeinclude`."""

from collections.abc import Sequence

from ..domain.errors import Invalid
from .git_directories import GitDirectories
from .run import run_git

FILE = ".worktreeinclude"
MAX_PATTERNS = 1000


def parse_patterns(text: str) -> list[str]:
    """Return the patterns of a `.worktreeinclude`, in `.gitignore` syntax; raise Invalid for too many."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    patterns = [line for line in lines if line.strip() and not line.startswith("#")]
    if len(patterns) > MAX_PATTERNS:
        raise Invalid(f"{FILE} has more than {MAX_PATTERNS} patterns")
    return patterns


async def included_files(repository: GitDirectories, patterns: Sequence[str]) -> list[str]:
    """Return the untracked files that match, ignored ones included, relative to the work tree."""
    if not patterns:
        return []
    excludes = [f"--exclude={pattern}" for pattern in patterns]
    result = await run_git(repository, "ls-files", "--others", "--ignored", "-z", *excludes, timeout=120)
    names = result.output.decode("utf-8", "surrogateescape").split("\0")
    return [name for name in names if name and not name.endswith("/")]  # a slash marks a nested repository
