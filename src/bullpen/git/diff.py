"""What has changed in a work tree since it left its base."""

import asyncio

from msgspec import Struct

from ..domain.errors import NotFound
from .diff_format import FileDiff, IndexDifferences, parse_diff, parse_raw, text
from .places import GitDirectories
from .process import ProcessResult
from .revisions import find_commit
from .run import run_git

MOST_OUTPUT = 32 << 20  # bytes of patches in one diff
TIMEOUT = 60.0  # seconds; the first look at a large work tree reads all of it
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # what a repository without a commit starts from
TOO_MUCH = "the changes are too large to show; only their counts are here"

_RAW = ("--raw", "--no-abbrev", "--no-renames", "-z")
_LISTS = ("--raw", "--no-abbrev", "--numstat", "-z", "--find-renames")
_MAIN_LINES = ("refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master")


class TrackedChanges(Struct, frozen=True, kw_only=True):
    """The changes git knows of, and the files it does not."""

    base: str
    files: list[FileDiff]
    untracked: list[str]
    branch: str | None  # none: a commit is checked out, and no branch
    note: str | None = None


async def read_diff(place: GitDirectories, base: str | None = None) -> TrackedChanges:
    """The work tree against `base`, or against where its branch left the main line.

    One look at every file of the work tree, not two: `git status` would take as long as the diff.
    """
    (commit, patches, from_base), from_head, untracked, branch = await asyncio.gather(
        _read_patches(place, base),
        _read_staged(place),
        _read_untracked(place),
        _read_branch(place),
    )
    index = IndexDifferences(from_base=from_base, from_head=from_head)
    note = TOO_MUCH if patches.cut else None
    output = await _read_lists(place, commit) if patches.cut else patches.output
    files = parse_diff(output, index)
    return TrackedChanges(base=commit, files=files, untracked=untracked, branch=branch, note=note)


async def find_base(place: GitDirectories, wanted: str | None = None) -> str:
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


async def _main_lines(place: GitDirectories) -> list[tuple[str, bool]]:
    """The main lines there are, the best first, each with whether it is checked out here."""
    said = await run_git(place, "for-each-ref", "--format=%(refname) %(HEAD)", refs=_MAIN_LINES)
    found = dict(line.split(" ", 1) for line in text(said.output).splitlines())
    return [(name, found[name] == "*") for name in _MAIN_LINES if name in found]


async def _merge_base(place: GitDirectories, line: str, head: str) -> str:
    """Where the two parted; what never met is compared with what it is now."""
    found = await run_git(place, "merge-base", refs=[line, head], accept=(0, 1))
    return text(found.output).strip() if found.code == 0 else head


async def _read_patches(
    place: GitDirectories, wanted: str | None
) -> tuple[str, ProcessResult, dict[bytes, bytes]]:
    """The base, what differs from it, and what its commits have changed since."""
    base = await find_base(place, wanted)
    patches, committed = await asyncio.gather(
        run_git(
            place,
            "diff",
            *(*_LISTS, "--patch"),
            refs=[base],
            paths=[],
            timeout=TIMEOUT,
            limit=MOST_OUTPUT,
            cut=True,
        ),
        _read_committed(place, base),
    )
    return base, patches, committed


async def _read_lists(place: GitDirectories, base: str) -> bytes:
    said = await run_git(place, "diff", *_LISTS, refs=[base], paths=[], timeout=TIMEOUT, limit=MOST_OUTPUT)
    return said.output


async def _read_committed(place: GitDirectories, base: str) -> dict[bytes, bytes]:
    if base == EMPTY_TREE:
        return {}
    said = await run_git(place, "diff-tree", "-r", *_RAW, refs=[base, "HEAD"], limit=MOST_OUTPUT)
    return parse_raw(said.output)


async def _read_staged(place: GitDirectories) -> dict[bytes, bytes]:
    said = await run_git(place, "diff", "--cached", *_RAW, paths=[], limit=MOST_OUTPUT)
    return parse_raw(said.output)


async def _read_untracked(place: GitDirectories) -> list[str]:
    options = ("--others", "--exclude-standard", "-z")
    said = await run_git(place, "ls-files", *options, timeout=TIMEOUT, limit=MOST_OUTPUT)
    return said.output.decode("utf-8", "surrogateescape").split("\0")[:-1]


async def _read_branch(place: GitDirectories) -> str | None:
    said = await run_git(place, "symbolic-ref", "--quiet", "--short", refs=["HEAD"], accept=(0, 1))
    return None if said.code else text(said.output).strip()
