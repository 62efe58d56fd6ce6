"""The built page in the package: no inline code, file names with hashes, a small first load."""

import gzip
import re
from pathlib import Path

import pytest

BUILT = Path(__file__).parents[2] / "src/bullpen/web/ui"
ROOT_FILES = [
    "assets",
    "icons",
    "index.html",
    "manifest.webmanifest",
    "offline.css",
    "offline.html",
    "worker.js",
]
MAX_FIRST_LOAD_BYTES = 250_000  # JavaScript, gzipped


def index() -> str:
    return (BUILT / "index.html").read_text()


def test_the_page_has_no_inline_script_style_or_handler() -> None:
    assert re.findall(r"<script(?![^>]*\ssrc=)[^>]*>", index()) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", index()) == []


def test_every_asset_carries_a_hash_of_its_content_in_its_name() -> None:
    names = [path.name for path in (BUILT / "assets").iterdir()]
    assert names
    assert [name for name in names if not re.fullmatch(r"[\w-]+-[\w-]{8}\.\w+", name)] == []
    assert sorted(path.name for path in BUILT.iterdir()) == ROOT_FILES


def first_load() -> list[bytes]:
    names = re.findall(r'(?:src|href)="/(assets/[^"]+\.js)"', index())
    assert names
    return [(BUILT / name).read_bytes() for name in names]


def test_the_first_load_has_less_than_250_kb_of_javascript() -> None:
    assert sum(len(gzip.compress(script)) for script in first_load()) < MAX_FIRST_LOAD_BYTES


@pytest.mark.parametrize("name_in_library", [b"xterm-helper-textarea", b"injectionSelector"])  # xterm, Shiki
def test_a_large_library_is_loaded_later_than_the_page(name_in_library: bytes) -> None:
    assert any(name_in_library in path.read_bytes() for path in (BUILT / "assets").glob("*.js"))
    assert not any(name_in_library in script for script in first_load())


def test_the_terminal_creates_no_style_elements() -> None:
    scripts = [path.read_text() for path in (BUILT / "assets").glob("*.js")]
    assert any("bullpen-sheet" in script for script in scripts)
    assert not any(re.search(r"createElement\([\"'`]style[\"'`]\)", script) for script in scripts)
