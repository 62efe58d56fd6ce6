"""docs/requirements.md is current, and each requirement has exactly one test."""

import re
import subprocess
import sys
from pathlib import Path

from requirements.requirement_texts import DEVIATIONS, DOCUMENTS, REQUIREMENTS

ROOT = Path(__file__).parents[2]


def test_the_page_of_requirements_is_current() -> None:
    script = ROOT / "scripts" / "requirements_page.py"
    printed = subprocess.run([sys.executable, script], capture_output=True, check=True).stdout
    assert printed.decode() == (ROOT / "docs" / "requirements.md").read_text(), "run make pages"


def test_each_requirement_has_one_test() -> None:
    sources = [path.read_text() for path in (ROOT / "tests" / "requirements").glob("test_*.py")]
    numbers = [int(each) for source in sources for each in re.findall(r"def test_r(\d+)_", source)]
    everything = list(range(1, 84))
    assert sorted(numbers) == sorted(REQUIREMENTS) == everything
    assert [number for numbers in DOCUMENTS.values() for number in numbers] == everything
    assert set(DEVIATIONS) <= set(REQUIREMENTS)
