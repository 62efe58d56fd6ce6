"""`docs/agents.md` lists the built-in agents, their login signs and the results with pinned versions."""

import json
import re
from pathlib import Path

import pytest

from bullpen.agents.definitions import builtin
from bullpen.agents.discovery import DEMO, PREFERRED
from real_agents import results
from real_agents.installed import AGENTS, HERE, PACKAGES

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"


def test_every_built_in_agent_is_in_the_table() -> None:
    table = PAGE.read_text().split("| id | agent | to install |\n", 1)[1].split("\n\n", 1)[0]
    ids = [id for row in table.splitlines()[1:] for id in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert sorted(ids) == sorted(builtin())


def test_the_page_lists_the_default_agents_in_their_order() -> None:
    (sentence,) = re.findall(r"the first that is installed of (.*?)\.", PAGE.read_text(), re.DOTALL)
    assert re.findall(r"`([^`]+)`", sentence) == [*PREFERRED, DEMO]


def test_the_results_of_the_page_are_from_the_pinned_versions() -> None:
    pinned = json.loads((HERE / "package.json").read_text())["dependencies"]
    row = " | ".join(pinned[PACKAGES[agent]] for agent in AGENTS)
    assert f"| version | {row} |" in PAGE.read_text()


def test_new_results_replace_the_last_ones(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{results.BEGIN}\nold\n{results.END}\nafter\n")
    results.write(page, "new")
    assert page.read_text() == f"before\n{results.BEGIN}\nnew\n{results.END}\nafter\n"


def test_results_are_not_written_to_a_page_without_a_place(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing\n")
    with pytest.raises(ValueError, match="no place"):
        results.write(page, "new")


@pytest.mark.parametrize("agent", [id for id in builtin() if id != DEMO and not id.endswith("-tui")])
def test_every_login_sign_is_in_the_table(agent: str) -> None:
    table = PAGE.read_text().split("| agent | login signs |\n", 1)[1].split("\n\n", 1)[0]
    (row,) = [line for line in table.splitlines() if line.startswith(f"| `{agent}` |")]
    login = builtin()[agent].login
    assert all(f"`{name}`" in row for name in login.env)
    assert all(file.rpartition("/")[2] in row for file in login.files)
    assert bool(login.hidden) == ("it may be in" in row)
