"""What has changed in a work tree since it left its base."""

import asyncio

from msgspec import Struct

from ..domain.errors import NotFound
from .changes import Status, read_status
from .diff_format import FileDiff, parse_diff, text
from .places import Place
from .revisions import find_commit
from .run import filter_overrides, run_git

MOST_OUTPUT = 32 << 20  # bytes of patches in one diff
TIMEOUT = 60.0  # seconds; the first look at a large work tree reads all of it
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # what a repository without a commit starts from
TOO_MUCH = "the changes are too large to show; only their counts are here"

_MAIN_LINES = ("refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master")


class Tracked(Struct, frozen=True, kw_only=True):
    """The changes git knows of, and what it says of the rest."""

    base: str
    files: list[FileDiff]
    status: Status
    note: str | None = None


async def read_diff(place: Place, base: str | None = None) -> Tracked:
    """The work tree against `base`, or against where its branch left the main line."""
    filters = await filter_overrides(place)
    status, (commit, files, note) = await asyncio.gather(
        read_status(place, TIMEOUT, filters), _read_files(place, base, filters)
    )
    return Tracked(base=commit, files=files, status=status, note=note)


async def find_base(place: Place, wanted: str | None = None) -> str:
    """The commit that changes are counted from."""
    head, lines = await asyncio.gather(find_commit(place, "HEAD"), _main_lines(place))
    if head is None:
        return EMPTY_TREE
    if wanted is not None:
        if await find_commit(place, wanted) is None:
            raise NotFound(f"there is no commit {wanted}")
        return await _merge_base(place, wanted, head)
    for line, is_here in lines:
        return head if is_here else await _merge_base(place, line, head)
    return head


async def _main_lines(place: Place) -> list[tuple[str, bool]]:
    """The main lines there are, the best first, each with whether it is checked out here."""
    said = await run_git(place, "for-each-ref", "--format=%(refname) %(HEAD)", refs=_MAIN_LINES)
    found = dict(line.split(" ", 1) for line in text(said.output).splitlines())
    return [(name, found[name] == "*") for name in _MAIN_LINES if name in found]


async def _merge_base(place: Place, line: str, head: str) -> str:
    """Where the two parted; what never met is compared with what it is now."""
    found = await run_git(place, "merge-base", refs=[line, head], accept=(0, 1))
    return text(found.output).strip() if found.code == 0 else head


async def _read_files(
    place: Place, wanted: str | None, filters: dict[str, str]
) -> tuple[str, list[FileDiff], str | None]:
    """The base, what has changed since, and why that is not all."""
    base = await find_base(place, wanted)
    lists = ("--raw", "--numstat", "-z", "--find-renames")
    said = await run_git(
        place,
        "diff",
        *(*lists, "--patch"),
        refs=[base],
        paths=[],
        timeout=TIMEOUT,
        limit=MOST_OUTPUT,
        cut=True,
        filters=filters,
    )
    if not said.cut:
        return base, parse_diff(said.output), None
    said = await run_git(
        place, "diff", *lists, refs=[base], paths=[], timeout=TIMEOUT, limit=MOST_OUTPUT, filters=filters
    )
    return base, parse_diff(said.output), TOO_MUCH
