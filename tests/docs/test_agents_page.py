"""What `docs/agents.md` says of real agents is the result of a run with the versions that are pinned."""

import json
from pathlib import Path

import pytest

from real_agents import results
from real_agents.installed import AGENTS, HERE, PACKAGES

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"


def test_the_last_run_was_with_the_pinned_versions() -> None:
    pinned = json.loads((HERE / "package.json").read_text())["dependencies"]
    row = " | ".join(pinned[PACKAGES[agent]] for agent in AGENTS)
    assert f"| version | {row} |" in PAGE.read_text()


def test_results_take_the_place_of_the_last_ones(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{results.BEGIN}\nold\n{results.END}\nafter\n")
    results.write(page, "new")
    assert page.read_text() == f"before\n{results.BEGIN}\nnew\n{results.END}\nafter\n"


def test_results_are_not_written_to_a_page_without_a_place(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing\n")
    with pytest.raises(ValueError, match="no place"):
        results.write(page, "new")
