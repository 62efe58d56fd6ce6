"""Call git so that nothing a repository contains makes git run a program.

Git runs programs that its configuration names: hooks, fsmonitor, filters, external diffs, helpers. So git
gets a configuration that the server makes (see overlays.py), a small environment, and directories that the
server determined.

    git_dirs = GitDirectories(git_dir=…, common_dir=…, work_tree=…)
    result = await run_git(git_dirs, "diff", "--numstat", "-z", refs=[base], paths=["src/a.py"])
    result.output                                                       # bytes, as git wrote them

Names that come from clients or agents go into `refs` and `paths`, which stand behind `--end-of-options` and
`--`, never into the options.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from ..domain.errors import Conflict, RemoteFault
from ..processes import ProcessResult
from .command import MAX_OUTPUT_BYTES, TIMEOUT_SECONDS, GitAccess, start_git
from .discovery import object_directories
from .git_directories import GitDirectories
from .marked import marker_variables
from .overlays import OVERLAYS

_DIFF = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all")

# The verbs that may be called, each with the options that keep it out of submodules: git would read their
# own configuration.
VERBS: dict[str, tuple[str, ...]] = {
    "blame": ("--no-textconv",),
    "cat-file": (),
    "check-ignore": (),
    "diff": _DIFF,
    "diff-files": _DIFF,
    "diff-index": _DIFF,
    "diff-tree": _DIFF,
    "for-each-ref": (),
    "log": _DIFF,
    "ls-files": (),
    "ls-tree": (),
    "merge-base": (),
    "mktree": (),
    "rev-list": (),
    "rev-parse": (),
    "show": _DIFF,
    "status": ("--ignore-submodules=all",),
    "symbolic-ref": (),
    "update-ref": (),
    "worktree": (),
}


class GitFailed(RemoteFault):
    """Git ended with an exit code that the caller does not accept."""

    def __init__(self, verb: str, ended: ProcessResult) -> None:
        self.exit_code = ended.code
        self.stderr = ended.errors
        super().__init__(f"git {verb} failed: {_reason(ended)}")


async def run_git(
    git_dirs: GitDirectories,
    verb: str,
    *options: str,
    refs: Sequence[str] = (),
    paths: Sequence[str] | None = None,
    stdin: bytes = b"",
    timeout: float = TIMEOUT_SECONDS,
    limit: int = MAX_OUTPUT_BYTES,
    cut: bool = False,
    accept: Sequence[int] = (0,),
    writes: Sequence[Path] = (),
    on_progress: Callable[[str], None] | None = None,
    marker: str | None = None,
) -> ProcessResult:
    """Run `git <verb> <options> --end-of-options <refs> -- <paths>` with these directories.

    `options` come from Bullpen itself. `refs` and `paths` may come from a client; paths are taken literally.
    Raise GitFailed if the exit code is not in `accept`. Raise RemoteFault if git prints more than `limit`
    bytes, unless `cut` allows the result to be cut there. Git can change what is in `writes`, and nothing
    else, if this process confines git (see command.py). `on_progress` gets each line of stderr. Cancelling
    ends git and its children. With a `marker`, `kill_marked` can kill them after a crash of the server.
    """
    git_dirs = git_dirs.resolved()
    overlay = await OVERLAYS.prepare(git_dirs)
    directory_options = (f"--git-dir={git_dirs.git_dir}", f"--work-tree={git_dirs.work_tree}")
    arguments = [*VERBS[verb], *options]
    if refs:
        arguments += ["--end-of-options", *refs]
    if paths is not None:
        arguments += ["--", *paths]
    ended = await start_git(
        verb,
        arguments,
        {"GIT_COMMON_DIR": str(overlay), **marker_variables(marker)},
        _access(git_dirs, overlay, writes),
        options=directory_options,
        stdin=stdin,
        timeout=timeout,
        limit=limit,
        on_progress=on_progress,
    )
    ended = replace(ended, errors=ended.errors.replace(str(overlay), str(git_dirs.common_dir)))
    if ended.cut:
        if cut:
            return ended
        raise RemoteFault(f"git {verb} printed more than {limit} bytes")
    if ended.code not in accept:
        raise _failure(verb, ended)
    return ended


def _access(git_dirs: GitDirectories, overlay: Path, writes: Sequence[Path]) -> GitAccess:
    """Return what git may read and write in a call with these directories."""
    directories = (git_dirs.work_tree, git_dirs.git_dir, git_dirs.common_dir, overlay)
    others = (*object_directories(git_dirs.common_dir), *OVERLAYS.user_files())
    return GitAccess(read=tuple(map(str, (*directories, *others))), write=tuple(map(str, writes)))


def _failure(verb: str, ended: ProcessResult) -> Conflict | GitFailed:
    """Return the error for an exit code that is not accepted: Conflict if another git holds a lock."""
    if ".lock': File exists" in ended.errors:
        lock = ended.errors.partition("Unable to create '")[2].partition("'")[0]
        return Conflict(f"{lock} was left by another git; wait until that git ends, or remove the file")
    return GitFailed(verb, ended)


def _reason(ended: ProcessResult) -> str:
    """Return the first line that git calls fatal or an error."""
    lines = ended.errors.splitlines()
    errors = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    line = (errors or lines or [f"it ended with code {ended.code}"])[0]
    return line.removeprefix("fatal: ").removeprefix("error: ")[:500]
