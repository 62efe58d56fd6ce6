"""Read what has changed in a work tree since its base commit."""

import asyncio

from msgspec import Struct

from ..domain.errors import NotFound
from ..processes import ProcessResult
from .diff_format import FileDiff, IndexDifferences, parse_diff, parse_raw, text
from .git_directories import GitDirectories
from .revisions import find_commit
from .run import run_git

MAX_DIFF_BYTES = 32 << 20  # patches of one diff
DIFF_TIMEOUT = 60.0  # seconds; the first diff of a large work tree reads all of it
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # the base in a repository without commits
TOO_LARGE = "the changes are too large to show; only their counts are shown"

_RAW = ("--raw", "--no-abbrev", "--no-renames", "-z")
_LISTS = ("--raw", "--no-abbrev", "--numstat", "-z", "--find-renames")
_MAIN_LINES = ("refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master")


class TrackedChanges(Struct, frozen=True, kw_only=True):
    """The changes of tracked files, and the untracked files of a work tree."""

    base: str
    files: list[FileDiff]
    untracked: list[str]
    branch: str | None  # None: a commit is checked out, not a branch
    note: str | None = None


async def read_diff(git_dirs: GitDirectories, base: str | None = None) -> TrackedChanges:
    """Compare the work tree with `base`, or with the commit where its branch left the main line.

    The work tree is read once: `git status` would take as long again as the diff.
    """
    (commit, patches, from_base), from_head, untracked, branch = await asyncio.gather(
        _read_patches(git_dirs, base),
        _read_staged(git_dirs),
        _read_untracked(git_dirs),
        _read_branch(git_dirs),
    )
    index = IndexDifferences(from_base=from_base, from_head=from_head)
    note = TOO_LARGE if patches.cut else None
    output = await _read_lists(git_dirs, commit) if patches.cut else patches.output
    files = parse_diff(output, index)
    return TrackedChanges(base=commit, files=files, untracked=untracked, branch=branch, note=note)


async def find_base(git_dirs: GitDirectories, base: str | None = None) -> str:
    """Return the commit that the work tree is compared with; raise NotFound if there is no commit `base`."""
    head, lines = await asyncio.gather(find_commit(git_dirs, "HEAD"), _main_lines(git_dirs))
    if head is None:
        return EMPTY_TREE
    if base is not None:
        if await find_commit(git_dirs, base) is None:
            raise NotFound(f"there is no commit {base}")
        return await _merge_base(git_dirs, base, head)
    for line, is_here in lines:
        return head if is_here else await _merge_base(git_dirs, line, head)
    return head


async def _main_lines(git_dirs: GitDirectories) -> list[tuple[str, bool]]:
    """Return the refs of the main line that exist, the best first, and whether each is checked out here."""
    result = await run_git(git_dirs, "for-each-ref", "--format=%(refname) %(HEAD)", refs=_MAIN_LINES)
    found = dict(line.split(" ", 1) for line in text(result.output).splitlines())
    return [(name, found[name] == "*") for name in _MAIN_LINES if name in found]


async def _merge_base(git_dirs: GitDirectories, line: str, head: str) -> str:
    """Return the merge base of a ref and `head`, or `head` if the two have no common history."""
    found = await run_git(git_dirs, "merge-base", refs=[line, head], accept=(0, 1))
    return text(found.output).strip() if found.code == 0 else head


async def _read_patches(
    git_dirs: GitDirectories, requested: str | None
) -> tuple[str, ProcessResult, dict[bytes, bytes]]:
    """Return the base, the diff of the work tree to it, and the objects that commits have changed since."""
    base = await find_base(git_dirs, requested)
    patches, committed = await asyncio.gather(
        run_git(
            git_dirs,
            "diff",
            *(*_LISTS, "--patch"),
            refs=[base],
            paths=[],
            timeout=DIFF_TIMEOUT,
            limit=MAX_DIFF_BYTES,
            cut=True,
        ),
        _read_committed(git_dirs, base),
    )
    return base, patches, committed


async def _read_lists(git_dirs: GitDirectories, base: str) -> bytes:
    """Return the lists of changed files without patches."""
    result = await run_git(
        git_dirs, "diff", *_LISTS, refs=[base], paths=[], timeout=DIFF_TIMEOUT, limit=MAX_DIFF_BYTES
    )
    return result.output


async def _read_committed(git_dirs: GitDirectories, base: str) -> dict[bytes, bytes]:
    """Return the object of each path that commits since the base have changed."""
    if base == EMPTY_TREE:
        return {}
    result = await run_git(git_dirs, "diff-tree", "-r", *_RAW, refs=[base, "HEAD"], limit=MAX_DIFF_BYTES)
    return parse_raw(result.output)


async def _read_staged(git_dirs: GitDirectories) -> dict[bytes, bytes]:
    """Return the object of each path that the index has staged."""
    result = await run_git(git_dirs, "diff", "--cached", *_RAW, paths=[], limit=MAX_DIFF_BYTES)
    return parse_raw(result.output)


async def _read_untracked(git_dirs: GitDirectories) -> list[str]:
    """Return the untracked files that are not ignored."""
    options = ("--others", "--exclude-standard", "-z")
    result = await run_git(git_dirs, "ls-files", *options, timeout=DIFF_TIMEOUT, limit=MAX_DIFF_BYTES)
    return result.output.decode("utf-8", "surrogateescape").split("\0")[:-1]


async def _read_branch(git_dirs: GitDirectories) -> str | None:
    """Return the branch that is checked out; None if HEAD is detached."""
    result = await run_git(git_dirs, "symbolic-ref", "--quiet", "--short", refs=["HEAD"], accept=(0, 1))
    return None if result.code else text(result.output).strip()
