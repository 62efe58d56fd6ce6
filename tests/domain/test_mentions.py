"""The files that a prompt mentions."""

import pytest

from bullpen.domain.mentions import MAX_MENTIONS, find_mentions


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("look at @src/app.py and @b", [("src/app.py",), ("b",)]),
        ("@readme.md", [("readme.md",)]),
        ("see @readme.md.", [("readme.md.", "readme.md")]),
        ("(@a.py, @b.py)", [("a.py,", "a.py"), ("b.py)", "b.py")]),
        ('open @"my notes.txt"!', [("my notes.txt",)]),
        ("mail me@example.org, foo.@bar", []),
        ("@ alone and @", []),
        ('@"never closed', []),
        ("first\n@second", [("second",)]),
        ("@über/straße.txt", [("über/straße.txt",)]),
    ],
)
def test_mentions_are_paths_after_an_at_sign_that_begins_a_word(text: str, paths: list[object]) -> None:
    assert list(find_mentions(text)) == paths


def test_a_prompt_has_a_limited_number_of_mentions() -> None:
    assert len(list(find_mentions("@a " * 1000))) == MAX_MENTIONS
