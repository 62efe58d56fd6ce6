"""Parse the output of `git diff --raw --no-abbrev --numstat --patch -z`."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

MAX_PATCH_BYTES = 256 << 10  # of one file's patch that are shown
CUT = "cut: the change of this file is too large to show whole"

_STATUS_NAMES = {
    "A": "added",
    "C": "copied",
    "D": "deleted",
    "M": "modified",
    "R": "renamed",
    "T": "type changed",
    "U": "unmerged",
}
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_HEADER = b"diff --git "
NO_OBJECT = b"0" * 40  # git prints it for a missing file, and for one that it has not read
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


class Hunk(Struct, frozen=True, kw_only=True, rename="camel"):
    """The line ranges of one hunk."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int


class FileDiff(Struct, frozen=True, kw_only=True, rename="camel"):
    """One changed file. The counts are None for a file without lines. Names may have surrogate escapes."""

    path: str
    old_path: str | None = None
    status: str
    additions: int | None = None
    deletions: int | None = None
    binary: bool = False
    staged: bool = False
    unstaged: bool = False
    hunks: tuple[Hunk, ...] = ()
    patch: str = ""
    note: str | None = None  # why the patch is incomplete


class IndexDifferences(Struct, frozen=True, kw_only=True):
    """How the index differs from the base and from HEAD: the object of each path, NO_OBJECT for none."""

    from_base: Mapping[bytes, bytes] = {}
    from_head: Mapping[bytes, bytes] = {}

    def is_staged(self, path: bytes) -> bool:
        """Return whether the index differs from HEAD at a path."""
        return path in self.from_head

    def is_unstaged(self, path: bytes, found: bytes) -> bool:
        """Return whether a path differs between the index and the work tree, where git found this object.

        Git prints no object for a file that it has not read; it reads some to detect renames.
        """
        known = self.from_head.get(path, self.from_base.get(path))
        return found != known if found != NO_OBJECT else known != NO_OBJECT


def parse_raw(output: bytes) -> dict[bytes, bytes]:
    """Return the new object of each path in a raw diff without renames; an unmerged path has b""."""
    fields = iter(output.split(b"\0"))
    entries = ((field.split(b" "), next(fields)) for field in fields if field)
    return {path: b"" if letter == b"U" else found for (_, _, _, found, letter), path in entries}


def parse_diff(output: bytes, index: IndexDifferences) -> list[FileDiff]:
    """Return the files of a diff of the work tree in git's order, each with its patch."""
    listed, patch = _split(output)
    files = list(_listed_files(listed, index))
    chunks = _chunks(patch)
    texts: dict[bytes, list[bytes]] = {}
    for chunk in chunks:
        texts.setdefault(_path_of(chunk), []).append(chunk)
    return [with_patch(file, b"".join(texts.get(path, []))) for path, file in files]


def new_file(path: bytes, content: bytes | None, note: str | None = None) -> FileDiff:
    """Return an untracked file as a diff would show it if it were tracked."""
    file = FileDiff(path=_name(path), status="untracked", unstaged=True, note=note)
    if content is None:
        return file
    if b"\0" in content[:8000]:
        return replace(file, binary=True)
    lines = _LINE.findall(content)
    return with_patch(replace(file, additions=len(lines), deletions=0), _creation(path, lines))


def with_patch(file: FileDiff, patch: bytes) -> FileDiff:
    """Return the file with its patch, cut at MAX_PATCH_BYTES, and its hunks."""
    if len(patch) <= MAX_PATCH_BYTES:
        shown = text(patch)
        return replace(file, patch=shown, hunks=_hunks(shown))
    shown = text(patch[: patch.rindex(b"\n", 0, MAX_PATCH_BYTES) + 1])
    return replace(file, patch=shown, hunks=_hunks(shown), note=CUT)


def text(data: bytes) -> str:
    """Decode the output of git; bytes that are not UTF-8 are replaced."""
    return data.decode("utf-8", "replace")


def _name(path: bytes) -> str:
    """Return a path as text; bytes that are not UTF-8 become surrogate escapes."""
    return path.decode("utf-8", "surrogateescape")


def _split(output: bytes) -> tuple[bytes, bytes]:
    """Split the output into the raw and numstat lists, and the patch behind them."""
    if output.startswith(_HEADER):
        return b"", output
    listed, separator, patch = output.partition(b"\0\0" + _HEADER)
    return listed, _HEADER + patch if separator else b""


def _listed_files(listed: bytes, index: IndexDifferences) -> Iterator[tuple[bytes, FileDiff]]:
    """Yield path and values of each file in the raw and numstat lists."""
    fields = iter(listed.split(b"\0"))
    states: dict[bytes, tuple[str, bytes | None, bytes]] = {}
    for field in fields:
        if field.startswith(b":"):
            _, _, _, found, letters = field.split(b" ")
            letter = chr(letters[0])
            path, old = next(fields), None
            if letter in "RC":
                old, path = path, next(fields)
            if letter != "U" or path not in states:
                states[path] = (_STATUS_NAMES.get(letter, "modified"), old, found)
        elif field:
            added, deleted, path = field.split(b"\t", 2)
            if not path:  # a rename: both names follow
                next(fields)
                path = next(fields)
            status, old, found = states.get(path, ("modified", None, NO_OBJECT))
            yield (
                path,
                FileDiff(
                    path=_name(path),
                    old_path=None if old is None else _name(old),
                    status=status,
                    additions=None if added == b"-" else int(added),
                    deletions=None if deleted == b"-" else int(deleted),
                    binary=added == b"-",
                    staged=index.is_staged(path),
                    unstaged=index.is_unstaged(path, found),
                ),
            )


def _chunks(patch: bytes) -> list[bytes]:
    """Split a patch by files. Lines inside begin with a sign, so none looks like the header of a file."""
    starts = [match.start() for match in re.finditer(b"^" + _HEADER, patch, re.MULTILINE)]
    return [patch[start:end] for start, end in pairwise([*starts, len(patch)])]


def _path_of(chunk: bytes) -> bytes:
    """Return the path of a patch. Its header has the same name twice; renames and copies name it again."""
    header, _, rest = chunk.partition(b"\n")
    for line in rest.split(b"\n"):
        for prefix in (b"rename to ", b"copy to "):
            if line.startswith(prefix):
                return _unquoted(line.removeprefix(prefix))
        if line.startswith((b"--- ", b"@@ ", b"Binary files ", b"GIT binary patch")):
            break
    names = header.removeprefix(_HEADER)
    if names.endswith(b'"'):
        return _unquoted(names[names.rindex(b' "b/') + 1 :]).removeprefix(b"b/")
    return names[len(names) // 2 + 1 :].removeprefix(b"b/")


def _unquoted(name: bytes) -> bytes:
    """Return a path without the quotes and escapes of git."""
    if not name.startswith(b'"'):
        return name

    def character(match: re.Match[bytes]) -> bytes:
        escaped = match[1]
        return bytes([int(escaped, 8)]) if len(escaped) == 3 else _ESCAPED.get(escaped, escaped)

    return _ESCAPE.sub(character, name[1:-1])


def _hunks(patch: str) -> tuple[Hunk, ...]:
    """Return the line ranges of the hunks in a patch."""
    return tuple(
        Hunk(
            old_start=int(match[1]),
            old_lines=int(match[2] or 1),
            new_start=int(match[3]),
            new_lines=int(match[4] or 1),
        )
        for match in map(_HUNK.match, patch.split("\n"))
        if match
    )


def _creation(path: bytes, lines: list[bytes]) -> bytes:
    """Return the patch that creates a file with these lines."""
    name = b"b/" + path
    head = _HEADER + b"a/" + path + b" " + name + b"\nnew file mode 100644\n"
    if not lines:
        return head
    body = b"".join(b"+" + line for line in lines)
    end = b"" if body.endswith(b"\n") else b"\n\\ No newline at end of file\n"
    count = b"" if len(lines) == 1 else b",%d" % len(lines)
    return head + b"--- /dev/null\n+++ " + name + b"\n@@ -0,0 +1" + count + b" @@\n" + body + end
