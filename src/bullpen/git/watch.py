"""Directories watched for changes, without asking again and again."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import watchfiles

from .places import GitDirectories

DEBOUNCE = 400  # milliseconds a change waits for others at most
TIMEOUT = 1000  # milliseconds of nothing
STEP = 200  # milliseconds without a change that end the wait

# What changes without changing what a person sees.
_DULL = frozenset(
    {"node_modules", "__pycache__", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hg"}
)
_TELLING = frozenset({"HEAD", "index", "packed-refs", "MERGE_HEAD"})  # of a git directory


async def watch_work_tree(place: GitDirectories, is_watched: Callable[[str], bool]) -> AsyncGenerator[None]:
    """Yield each time that files, the index or a branch have changed. `is_watched` can leave out paths."""
    paths = [place.work_tree]
    if not place.git_dir.is_relative_to(place.work_tree):
        paths.append(place.git_dir)
    refs = place.common_dir / "refs" / "heads"
    if refs.is_dir() and not refs.is_relative_to(place.work_tree):
        paths.append(refs)
    async for _ in watch(paths, lambda path: _matters(place, Path(path)) and is_watched(path)):
        yield


async def watch(
    paths: list[Path], matters: Callable[[str], bool], *, recursive: bool = True
) -> AsyncGenerator[None]:
    """One item each time that something that matters has changed below the paths, which must exist.

    The first comes unasked: what changed before the watch stood was not seen.
    """
    loop, news, stop = asyncio.get_running_loop(), asyncio.Event(), Event()

    def look() -> None:
        changes = watchfiles.watch(
            *paths,
            watch_filter=lambda _, path: matters(path),
            debounce=DEBOUNCE,
            step=STEP,
            stop_event=stop,
            rust_timeout=TIMEOUT,
            yield_on_timeout=True,
            raise_interrupt=False,
            recursive=recursive,
            ignore_permission_denied=True,
        )
        for count, seen in enumerate(changes):
            if seen or count == 0:
                loop.call_soon_threadsafe(news.set)

    with ThreadPoolExecutor(1, "watch") as thread:  # one each: a watch holds its thread as long as it lasts
        looking = loop.run_in_executor(thread, look)
        looking.add_done_callback(lambda _: news.set())
        try:
            while not looking.done():
                await news.wait()
                news.clear()
                if not looking.done():
                    yield
            looking.result()
        finally:
            stop.set()
            if not looking.done():
                await asyncio.wait([looking])


def _matters(place: GitDirectories, path: Path) -> bool:
    for git_dir in (place.git_dir, place.common_dir):
        if path.is_relative_to(git_dir):
            return path.name in _TELLING or path.is_relative_to(git_dir / "refs" / "heads")
    return _DULL.isdisjoint(path.parts)
