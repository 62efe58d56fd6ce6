"""The changes of a work tree as text for an agent: omissions are listed, and no patch ends its quote."""

from typing import Any

from bullpen.git.diff_format import FileDiff
from bullpen.workers.change_text import MAX_PATCHES_LENGTH, format_changes
from bullpen.workers.changes import WorkspaceChanges

PATCH = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-one\n+two\n"


def file(path: str = "a.py", patch: str = PATCH, **more: Any) -> FileDiff:
    return FileDiff(path=path, patch=patch, **{"status": "modified", "additions": 1, "deletions": 1, **more})


def changes(*files: FileDiff, note: str | None = None) -> WorkspaceChanges:
    return WorkspaceChanges(
        base="1a2b3c", branch="main", files=list(files), additions=len(files), deletions=1, note=note
    )


def test_a_change_is_described_with_its_patch() -> None:
    assert format_changes(changes(file())) == f"1 file, +1 -1, since 1a2b3c\n\n```diff\n{PATCH}```"


def test_without_changes_the_text_is_empty() -> None:
    assert format_changes(changes()) == ""


def test_a_fence_in_a_patch_does_not_end_the_quote() -> None:
    patch = PATCH + " ```\n ````\n"
    assert format_changes(changes(file(patch=patch))).endswith(f"`````diff\n{patch}`````")


def test_files_that_are_not_shown_are_listed_with_the_reason() -> None:
    long = file("long.py", "x" * MAX_PATCHES_LENGTH)
    picture = file("a.png", "", binary=True, additions=None, deletions=None)
    cut = file("cut.py", note="cut: too large")
    gone = file("mode.sh", "")
    text = format_changes(changes(file(), long, picture, cut, gone, note="2 more new files are not listed"))
    assert text.startswith("5 files, +5 -1, since 1a2b3c; 2 more new files are not listed\n")
    assert text.endswith(
        "Not shown, or shown in part:\n"
        "- `long.py` (modified, +1 -1; too long to pass on)\n"
        "- `a.png` (modified, binary)\n"
        "- `cut.py` (modified; cut: too large)\n"
        "- `mode.sh` (modified, +1 -1)"
    )
    assert text.count(PATCH) == 2
