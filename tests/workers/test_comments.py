"""Comments on lines of the changes become one message that quotes the lines of each."""

from bullpen.git.diff_format import FileDiff
from bullpen.workers.comments import DiffComment, format_comments

PATCH = """diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1,3 +1,4 @@
 one
-two
+2
+2.5
 three
"""
FILES = [FileDiff(path="a.py", status="modified", patch=PATCH)]


def test_each_comment_is_quoted_with_its_lines() -> None:
    comments = [
        DiffComment(path="b.py", line=7, text="why?"),
        DiffComment(path="a.py", line=2, end_line=3, text="  in words, please\n"),
        DiffComment(path="a.py", line=2, side="old", text="was better"),
    ]
    assert format_comments(comments, FILES, "Have a look:") == (
        "Have a look:\n\n"
        "`a.py`, lines 2 to 3:\n> +2\n> +2.5\nin words, please\n\n"
        "`a.py`, line 2 before the change:\n> -two\nwas better\n\n"
        "`b.py`, line 7:\nwhy?"
    )


def test_a_comment_on_lines_outside_every_hunk_has_no_quote() -> None:
    message = format_comments([DiffComment(path="a.py", line=90, text="here")], FILES)
    assert message.endswith("`a.py`, line 90:\nhere")
