"""What makes a fresh checkout a place to work in: files git does not carry, and a person's setup command."""

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from ..domain.errors import Conflict, NotFound
from ..git.includes import FILE, included_files, parse_patterns
from ..git.places import Place
from ..git.process import run_process
from ..sandbox.files import read_bytes

COMMAND_SECONDS = 1800.0
TAIL = 16 << 10
MOST_BYTES = 1 << 30
_RECORDED = 'exec >"$0" 2>&1; exec /bin/sh -c "$1"'


async def copy_included(repository: Place, work_tree: Path) -> list[str]:
    """Copies what `.worktreeinclude` names from the repository's own work tree; returns the names."""
    try:
        text = read_bytes(str(repository.work_tree), FILE).decode("utf-8", "replace")
    except NotFound:
        return []
    names = await included_files(repository, parse_patterns(text))
    inside = repository.work_tree / ".worktrees"
    wanted = [name for name in names if not (repository.work_tree / name).is_relative_to(inside)]
    size = sum((repository.work_tree / name).lstat().st_size for name in wanted)
    if size > MOST_BYTES:
        raise Conflict(f"{FILE} names {size >> 20} MiB of files; leave out what is not needed")
    for name in wanted:
        _copy(repository.work_tree / name, work_tree / name)
    return wanted


def _copy(source: Path, target: Path) -> None:
    """As it is: a link stays a link, so that nothing from elsewhere is brought in."""
    if not (source.is_symlink() or source.is_file()) or os.path.lexists(target):
        return
    target.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)


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
