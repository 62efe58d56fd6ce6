"""List the files of a work tree that are tracked, or untracked and not ignored."""

from .git_directories import GitDirectories
from .run import run_git

MAX_NAMES_BYTES = 4 << 20  # the list is cut there


async def list_file_names(git_dirs: GitDirectories, directory: str = ".") -> list[str]:
    """Return the names of the files in a directory of the work tree, relative to that directory."""
    options = ("--cached", "--others", "--exclude-standard", "--deduplicate", "-z")
    result = await run_git(
        git_dirs, "ls-files", *options, paths=[directory], limit=MAX_NAMES_BYTES, cut=True, timeout=30
    )
    names = result.output.decode("utf-8", "surrogateescape").split("\0")[:-1]
    prefix = "" if directory == "." else f"{directory}/"
    return [name.removeprefix(prefix) for name in names if not name.endswith("/")]  # a nested repository
