"""Titles from the text of a message, or from the output of a title program."""

import pytest

from bullpen.domain.titles import MAX_TITLE_LENGTH, clean_title, is_short_enough_for_title, short_title


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("fix the build", "fix the build"),
        ("Fix the build. Then run the tests.", "Fix the build."),
        ("\n\n## Fix the build\n\nIt has been red for days", "Fix the build"),
        ("- [ ] first\n- [ ] second", "first"),
        ("1. read v1.2 of it", "read v1.2 of it"),
        ("  many \t spaces ", "many spaces"),
        ("!!!", "!!!"),
        ("word " * 30, "word word word word word word word word word word word word…"),
        ("x" * 100, "x" * (MAX_TITLE_LENGTH - 1) + "…"),
        ("Grüße, Welt! 你好", "Grüße, Welt!"),
    ],
)
def test_the_title_is_the_first_words_of_the_message(message: str, title: str) -> None:
    assert short_title(message) == title
    assert len(title) <= MAX_TITLE_LENGTH


@pytest.mark.parametrize(("images", "title"), [(0, "a message"), (1, "an image"), (3, "3 images")])
def test_a_message_without_text_is_titled_by_its_number_of_images(images: int, title: str) -> None:
    assert short_title(" ", images) == title


def test_only_a_long_message_needs_a_generated_title() -> None:
    assert is_short_enough_for_title("x" * MAX_TITLE_LENGTH)
    assert is_short_enough_for_title("fix it\n")
    assert not is_short_enough_for_title("x" * (MAX_TITLE_LENGTH + 1))
    assert not is_short_enough_for_title("fix\nit")


@pytest.mark.parametrize(
    ("output", "title"),
    [
        ("Fix the build\n", "Fix the build"),
        ('\n"Fix the build."\nand more', "Fix the build"),
        ("**Title: Fix the build**", "Fix the build"),
        ("# Fix the build", "Fix the build"),
        ("…\n---\n", ""),
        ("", ""),
    ],
)
def test_the_output_of_a_title_program_loses_its_markup(output: str, title: str) -> None:
    assert clean_title(output) == title
