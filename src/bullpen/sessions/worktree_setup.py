"""What makes a fresh checkout a place to work in: files git does not carry, and a person's setup command."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from ..domain.errors import Conflict, NotFound
from ..git.includes import FILE, included_files, parse_patterns
from ..git.places import GitDirectories
from ..git.process import run_process
from ..sandbox.copying import copy_file
from ..sandbox.files import WorkspaceFiles

COMMAND_SECONDS = 1800.0
TAIL = 16 << 10
MOST_BYTES = 1 << 30
_RECORDED = 'exec >"$0" 2>&1; exec /bin/sh -c "$1"'


async def copy_included(source: WorkspaceFiles, repository: GitDirectories, work_tree: Path) -> list[str]:
    """Copy what `.worktreeinclude` names from the repository's own work tree; return the names."""
    try:
        text = source.read_bytes(FILE).decode("utf-8", "replace")
    except NotFound:
        return []
    names = await included_files(repository, parse_patterns(text))
    inside = repository.work_tree / ".worktrees"
    wanted = [name for name in names if not (repository.work_tree / name).is_relative_to(inside)]
    return await asyncio.to_thread(_copy_all, source, source.at(str(work_tree)), wanted)


def _copy_all(source: WorkspaceFiles, target: WorkspaceFiles, names: list[str]) -> list[str]:
    size = sum(_size(os.path.join(source.root, name)) for name in names)
    if size > MOST_BYTES:
        raise Conflict(f"{FILE} names {size >> 20} MiB of files; leave out what is not needed")
    return [name for name in names if copy_file(source, target, name)]


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:  # gone meanwhile
        return 0


async def run_command(what: str, command: str, work_tree: Path, env: Mapping[str, str], record: Path) -> None:
    """Runs a person's command in a worktree; all it says is in the file `record`."""
    await asyncio.to_thread(_make_way, record)
    argv = ["/bin/sh", "-c", _RECORDED, str(record), command]
    try:
        ended = await run_process(argv, env=env, cwd=str(work_tree), timeout=COMMAND_SECONDS, limit=1024)
        how = f"ended with code {ended.code}"
    except TimeoutError:
        ended, how = None, f"did not end within {COMMAND_SECONDS:g} s"
    if ended is None or ended.code:
        output = await asyncio.to_thread(_tail, record)
        raise Conflict(f"the {what} command {how}: {command}").with_details(
            {"command": command, "output": output}
        )


def _make_way(record: Path) -> None:
    record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    record.unlink(missing_ok=True)


def _tail(record: Path) -> str:
    try:
        return record.read_bytes()[-TAIL:].decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
