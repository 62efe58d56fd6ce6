"""Watch directories for changes of their files, with the kernel's notifications."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from pathlib import Path
from threading import Event

import watchfiles

from .git_directories import GitDirectories

DEBOUNCE_MS = 400  # a change waits so long for others at most
TIMEOUT_MS = 1000  # without a change, until the watcher checks whether it should stop
STEP_MS = 200  # without a change, which end the debounce early

# Directories whose changes do not matter to users.
_IGNORED_NAMES = frozenset(
    {"node_modules", "__pycache__", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hg"}
)
_GIT_FILES = frozenset({"HEAD", "index", "packed-refs", "MERGE_HEAD"})  # whose changes matter


async def watch_work_tree(
    git_dirs: GitDirectories, is_watched: Callable[[str], bool]
) -> AsyncGenerator[None]:
    """Yield each time that files, the index or a branch have changed. `is_watched` can leave out paths."""
    paths = [git_dirs.work_tree]
    if not git_dirs.git_dir.is_relative_to(git_dirs.work_tree):
        paths.append(git_dirs.git_dir)
    refs = git_dirs.common_dir / "refs" / "heads"
    if refs.is_dir() and not refs.is_relative_to(git_dirs.work_tree):
        paths.append(refs)
    async for _ in _watch(paths, lambda path: _matters(git_dirs, Path(path)) and is_watched(path)):
        yield


async def watch_directory(directory: Path) -> AsyncGenerator[None]:
    """Yield each time that an entry of a directory has changed; end when the directory is gone.

    It also yields once at the start, since changes before the watch began are not seen.
    """
    is_gone = Event()

    def matters(path: str) -> bool:
        if path == str(directory):  # it was moved or removed, and a new one may have its name
            is_gone.set()
        return True

    with suppress(FileNotFoundError):  # it was removed before the watch began
        async with aclosing(_watch([directory], matters, recursive=False)) as changes:
            async for _ in changes:
                yield
                if is_gone.is_set():
                    return


async def _watch(
    paths: list[Path], matters: Callable[[str], bool], *, recursive: bool = True
) -> AsyncGenerator[None]:
    """Yield each time that a path for which `matters` is true has changed below `paths`, which must exist.

    It also yields once at the start, since changes before the watch began are not seen.
    """
    loop, changed, stop = asyncio.get_running_loop(), asyncio.Event(), Event()

    def watch_in_thread() -> None:
        changes = watchfiles.watch(
            *paths,
            watch_filter=lambda _, path: matters(path),
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            stop_event=stop,
            rust_timeout=TIMEOUT_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            recursive=recursive,
            ignore_permission_denied=True,
        )
        for count, batch in enumerate(changes):
            if batch or count == 0:
                loop.call_soon_threadsafe(changed.set)

    with ThreadPoolExecutor(1, "watch") as thread:  # busy as long as the watch lasts
        watching = loop.run_in_executor(thread, watch_in_thread)
        watching.add_done_callback(lambda _: changed.set())
        try:
            while not watching.done():
                await changed.wait()
                changed.clear()
                if not watching.done():
                    yield
            watching.result()
        finally:
            stop.set()
            if not watching.done():
                await asyncio.wait([watching])


def _matters(git_dirs: GitDirectories, path: Path) -> bool:
    """Return whether a changed path may change what a user sees."""
    for git_dir in (git_dirs.git_dir, git_dirs.common_dir):
        if path.is_relative_to(git_dir):
            return path.name in _GIT_FILES or path.is_relative_to(git_dir / "refs" / "heads")
    return _IGNORED_NAMES.isdisjoint(path.parts)
