"""Names of branches, revisions and worktrees from requests are valid or refused."""

import pytest

from bullpen.domain.errors import Invalid
from bullpen.git.refs import check_branch, check_name, check_revision, slug

HOSTILE = [
    "",
    "--output=x",
    "-x",
    "-",
    "..",
    "a..b",
    "a\0b",
    "a\nb",
    "a b",
    "\x7f",
    "\ud800",
    "x" * 300,
    "ä" * 150,
    "a\\b",
    "a:b",
    "a?b",
    "a*b",
    "a[b",
]


@pytest.mark.parametrize(
    "text", [*HOSTILE, ".git", ".", "a/.git", "a//b", "/a", "a/", "a.", "a.lock", "a.lock/b"]
)
def test_an_invalid_branch_name_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        check_branch(text)


@pytest.mark.parametrize("text", ["@", "HEAD", "a@{1}", "a~1", "a^", "refs/heads/a"])
def test_a_revision_expression_is_no_branch_name(text: str) -> None:
    with pytest.raises(Invalid):
        check_branch(text)
    assert check_revision(text) == text


@pytest.mark.parametrize("text", HOSTILE)
def test_an_invalid_revision_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        check_revision(text)


@pytest.mark.parametrize(
    "text", [*HOSTILE, ".git", ".", "a/b", "/etc", "a.lock", "a.", "é", "main", "~", "$(x)"]
)
def test_an_invalid_worktree_name_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        check_name(text)


@pytest.mark.parametrize("text", ["topic", "feat/login", "v1.2", "ünïcode", "a-b_c", "user/x.y"])
def test_a_valid_branch_name_is_accepted(text: str) -> None:
    assert check_branch(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fix the login, please", "fix-the-login-please"),
        ("  ../../etc/passwd  ", "etc-passwd"),
        ("Übergröße ändern", "ubergroe-andern"),
        ("--output=x", "output-x"),
        ("你好", ""),
        ("word " * 30, "word-word-word-word-word-word"),
        ("x" * 100, "x" * 40),
    ],
)
def test_a_slug_is_made_of_the_first_words(text: str, expected: str) -> None:
    assert slug(text) == expected
