"""Print docs/requirements.md, a table of the requirements with their tests: scripts/requirements_page.py"""

import re
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests" / "requirements"
sys.path.insert(0, str(TESTS.parent))

from requirements.requirement_texts import DEVIATIONS, DOCUMENTS, REQUIREMENTS  # noqa: E402

HEAD = """# Requirements

Generated from `tests/requirements` by `scripts/requirements_page.py`; do not edit.

Five documents describe systems that Bullpen combines. Each numbered requirement has a test that drives a
server from outside. A deviation from the words of a document is deliberate; its reason is in the table.
"""


def main() -> None:
    sys.stdout.write(page())


def page() -> str:
    """Return the page: one table for each document."""
    tests = tests_by_number()
    lines = [HEAD]
    for document, numbers in DOCUMENTS.items():
        lines += [f"## {document}", "", "| | requirement | test | deviation |", "|---|---|---|---|"]
        lines += [_row(number, tests) for number in numbers]
        lines.append("")
    return "\n".join(lines)


def tests_by_number() -> dict[int, str]:
    """Return the name of the test of each requirement."""
    sources = [path.read_text() for path in sorted(TESTS.glob("test_*.py"))]
    found = [
        each for source in sources for each in re.findall(r"^(?:async )?def (test_r(\d+)_\w+)", source, re.M)
    ]
    return {int(number): name for name, number in found}


def _row(number: int, tests: dict[int, str]) -> str:
    return f"| R{number} | {REQUIREMENTS[number]} | `{tests[number]}` | {DEVIATIONS.get(number, '')} |"


if __name__ == "__main__":
    main()
