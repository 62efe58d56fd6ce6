"""ARCHITECTURE.md, docs/map.md and the decisions agree with the code and stay short."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
MAX_PAGE_BYTES = 12_000
MAX_DECISION_BYTES = 2_500
FOLDERS = ("src/bullpen", "ui/src", "tests", ".")


def named_files() -> set[str]:
    """Return the paths of modules that the page names."""
    return set(re.findall(r"(?<![\w./-])((?:[\w.-]+/)+[\w.-]+\.(?:py|ts))\b", PAGE))


def test_every_file_that_the_page_names_exists() -> None:
    assert len(named_files()) > 30
    assert [
        name for name in named_files() if not any((ROOT / folder / name).is_file() for folder in FOLDERS)
    ] == []


def test_every_folder_of_the_code_is_in_the_table_of_folders() -> None:
    listed = re.findall(r"^\| `(\w+)/` \|", PAGE.split("| folder of `src/bullpen` |")[1], re.MULTILINE)
    folders = {path.parent.name for path in (ROOT / "src/bullpen").glob("*/__init__.py")}
    assert folders <= set(listed)


def test_the_map_is_current() -> None:
    script = ROOT / "scripts" / "code_map.py"
    printed = subprocess.run([sys.executable, script], capture_output=True, check=True).stdout
    assert printed.decode() == (ROOT / "docs" / "map.md").read_text(), "run make pages"


def test_the_page_is_shorter_than_its_limit() -> None:
    assert len(PAGE.encode()) <= MAX_PAGE_BYTES


def test_a_decision_is_short_and_has_its_four_parts() -> None:
    pages = {path.name: path.read_text() for path in (ROOT / "docs" / "decisions").glob("0*.md")}
    parts = ("**Question.**", "**Choice.**", "**Cost.**", "**When to revisit.**")
    assert {name for name, text in pages.items() if len(text.encode()) > MAX_DECISION_BYTES} == set()
    assert {name for name, text in pages.items() if any(part not in text for part in parts)} == set()
