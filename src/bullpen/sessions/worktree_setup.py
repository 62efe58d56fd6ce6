"""Set up a new worktree: copy the files that `.worktreeinclude` names, and run the setup command."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from ..domain.errors import Conflict, NotFound
from ..git.git_directories import GitDirectories
from ..git.worktree_includes import FILE, included_files, parse_patterns
from ..processes import run_process
from ..sandbox.command import sandboxed_command
from ..sandbox.copying import copy_file
from ..sandbox.files import WorkspaceFiles
from ..sandbox.profile import Profile
from ..sandbox.run_limits import RunLimits

COMMAND_TIMEOUT_SECONDS = 1800.0
MAX_ERROR_OUTPUT_BYTES = 16 << 10  # of the end of the output
MAX_COPIED_BYTES = 1 << 30
_RUN_WITH_OUTPUT_FILE = 'exec >"$0" 2>&1; exec "$@"'


async def copy_included(source: WorkspaceFiles, repository: GitDirectories, work_tree: Path) -> list[str]:
    """Copy what `.worktreeinclude` names from the repository's own work tree; return the names."""
    try:
        text = source.read_bytes(FILE).decode("utf-8", "replace")
    except NotFound:
        return []
    names = await included_files(repository, parse_patterns(text))
    inside = repository.work_tree / ".worktrees"
    selected = [name for name in names if not (repository.work_tree / name).is_relative_to(inside)]
    return await asyncio.to_thread(_copy_all, source, source.at(str(work_tree)), selected)


def _copy_all(source: WorkspaceFiles, target: WorkspaceFiles, names: list[str]) -> list[str]:
    """Copy the files and return the names of those copied. Raise Conflict if they are too large."""
    size = sum(_size(os.path.join(source.root, name)) for name in names)
    if size > MAX_COPIED_BYTES:
        raise Conflict(f"{FILE} names {size >> 20} MiB of files; leave out what is not needed")
    return [name for name in names if copy_file(source, target, name)]


def _size(path: str) -> int:
    """Return the size of a file; 0 if it does not exist."""
    try:
        return os.lstat(path).st_size
    except OSError:  # deleted meanwhile
        return 0


async def run_command(
    kind: str,
    command: str,
    work_tree: Path,
    env: Mapping[str, str],
    output_file: Path,
    sandbox: Profile,
    limits: RunLimits,
) -> None:
    """Run the setup or cleanup command of a repository in its sandbox; write its output to `output_file`.

    Raise Conflict with the end of the output if it fails or takes too long.
    """
    await asyncio.to_thread(_prepare_file, output_file)
    inside = await sandboxed_command(sandbox, ["/bin/sh", "-c", command], env, str(work_tree))
    argv = ["/bin/sh", "-c", _RUN_WITH_OUTPUT_FILE, str(output_file), *inside.argv]
    try:
        async with limits.limited(sandbox, argv) as limited:
            ended = await run_process(
                limited, env=inside.env, cwd=str(work_tree), timeout=COMMAND_TIMEOUT_SECONDS, limit=1024
            )
        how = f"ended with code {ended.code}"
    except TimeoutError:
        ended, how = None, f"did not end within {COMMAND_TIMEOUT_SECONDS:g} s"
    if ended is None or ended.code:
        output = await asyncio.to_thread(_read_end, output_file)
        raise Conflict(f"the {kind} command {how}: {command}").with_details(
            {"command": command, "output": output}
        )


def _prepare_file(output_file: Path) -> None:
    """Create the directory of the output file, and delete an earlier file."""
    output_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    output_file.unlink(missing_ok=True)


def _read_end(output_file: Path) -> str:
    """Return the end of the output."""
    try:
        return output_file.read_bytes()[-MAX_ERROR_OUTPUT_BYTES:].decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
