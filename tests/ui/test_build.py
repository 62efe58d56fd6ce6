"""The built page as it lies in the package: nothing inline, names with hashes, a small first load."""

import re
from pathlib import Path

BUILT = Path(__file__).parents[2] / "src/bullpen/web/ui"
FIRST_LOAD = 100_000


def index() -> str:
    return (BUILT / "index.html").read_text()


def test_the_page_has_no_inline_script_style_or_handler() -> None:
    assert re.findall(r"<script(?![^>]*\ssrc=)[^>]*>", index()) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", index()) == []


def test_every_asset_carries_a_hash_of_its_content_in_its_name() -> None:
    names = [path.name for path in (BUILT / "assets").iterdir()]
    assert names
    assert [name for name in names if not re.fullmatch(r"[\w-]+-[\w-]{8}\.\w+", name)] == []
    assert sorted(path.name for path in BUILT.iterdir()) == ["assets", "index.html"]


def test_the_first_load_is_small_and_without_the_terminal() -> None:
    first = re.findall(r'(?:src|href)="/(assets/[^"]+)"', index())
    assert sum((BUILT / name).stat().st_size for name in first) < FIRST_LOAD
    scripts = [(BUILT / name).read_text() for name in first if name.endswith(".js")]
    assert scripts
    assert not any("xterm-helper-textarea" in script for script in scripts)


def test_the_terminal_creates_no_style_elements() -> None:
    scripts = [path.read_text() for path in (BUILT / "assets").glob("*.js")]
    assert any("bullpen-sheet" in script for script in scripts)
    assert not any(re.search(r"createElement\([\"'`]style[\"'`]\)", script) for script in scripts)
