"""What `docs/agents.md` says of real agents is written by their run."""

from pathlib import Path

import pytest

from real_agents.results import BEGIN, END, write


def test_results_take_the_place_of_the_last_ones(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write(page, "new")
    assert page.read_text() == f"before\n{BEGIN}\nnew\n{END}\nafter\n"


def test_results_are_not_written_to_a_page_without_a_place(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing\n")
    with pytest.raises(ValueError, match="no place"):
        write(page, "new")
