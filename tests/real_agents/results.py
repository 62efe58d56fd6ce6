"""Write the table of `docs/agents.md`: the tested agents, their versions, and the result of each test."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from real_agents.installed import AGENTS, version

BEGIN, END = "<!-- make test-agents -->", "<!-- end -->"
WORDS = {True: "works", False: "**fails**", None: ""}
TEST = re.compile(r"::test_(?P<name>\w+)\[(?P<agent>\w+)\]$")


class Results:
    """Collects the results of a test run, and writes the table into the page if every test ran."""

    def __init__(self, page: Path) -> None:
        self._page = page
        self._left_out = False
        self._worked: dict[str, dict[str, bool]] = {}

    def pytest_deselected(self) -> None:
        self._left_out = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if found := TEST.search(report.nodeid):
            worked = self._worked.setdefault(found["name"].replace("_", " "), {})
            worked[found["agent"]] = worked.get(found["agent"], True) and report.outcome == "passed"

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        count = sum(len(worked) for worked in self._worked.values())
        if count and count == session.testscollected and not self._left_out:
            write(self._page, self.text())

    def text(self) -> str:
        head = ["", *(f"`{agent}`" for agent in AGENTS)]
        lines = [head, ["---"] * len(head), ["version", *map(version, AGENTS)]]
        for name, worked in self._worked.items():
            lines.append([name, *(WORDS[worked.get(agent)] for agent in AGENTS)])
        rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"Last run on {datetime.now(UTC):%Y-%m-%d}.\n\n{rows}"


def write(page: Path, text: str) -> None:
    """Replace the text between the markers of the page."""
    place = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    after, found = place.subn(lambda _: f"{BEGIN}\n{text}\n{END}", page.read_text())
    if found != 1:
        raise ValueError(f"{page} has no place for the results, from {BEGIN} to {END}")
    page.write_text(after)
