"""Links, settings, tests, methods and commands that the pages name exist."""

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer import Exit
from typer._click.exceptions import MissingParameter
from typer.main import get_command

from bullpen.cli.app import app
from bullpen.cli.verbs import VERBS
from bullpen.client import Client
from bullpen.config import OPTIONS
from bullpen.web import bodies
from bullpen.workers.images import MAX_IMAGE_BYTES

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> Iterator[str]:
    for link in LINK.findall(FENCED.sub("", page.read_text())):
        path, _, anchor = link.partition("#")
        if ":" in path:
            continue  # an address outside the repository
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_has_a_target(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_every_decision_is_in_the_list_of_decisions() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"\]\((\d{4}-.+?\.md)\)", (folder / "README.md").read_text())
    assert listed == sorted(path.name for path in folder.glob("0*.md"))


def test_every_setting_is_explained_under_its_names() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| `([A-Z_]+)` \|", page, re.MULTILINE)
    assert rows == [(option.name, option.env) for option in OPTIONS]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_test_and_path_of_a_test_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text()
    named = set(re.findall(r"\b(test_\w+)`", text))
    assert named or page.name != "security.md"
    assert named - written_tests() == set()
    assert [path for path in re.findall(r"\btests/[\w/]+(?:\.py)?", text) if not (ROOT / path).exists()] == []


@cache
def written_tests() -> set[str]:
    """Return the names of all tests of Python."""
    source = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    return set(re.findall(r"^(?:async )?def (test_\w+)", source, re.MULTILINE))


def test_every_method_of_the_client_is_on_its_page_and_no_other() -> None:
    page = (ROOT / "docs" / "client.md").read_text()
    table = page.split("## Methods", 1)[1].split("\n\n")[1]
    assert sorted(re.findall(r"`(\w+)`", table)) == [name for name in dir(Client) if not name.startswith("_")]


@pytest.mark.parametrize(
    ("name", "pattern"), [("protocol.md", r"^\*\*Length"), ("security.md", r"^\| 11 \|")]
)
def test_the_pages_name_the_size_limits_of_bodies(name: str, pattern: str) -> None:
    text = re.findall(pattern + r".*\n.*", (ROOT / "docs" / name).read_text(), re.MULTILINE)[0]
    assert f"{bodies.MAX_BODY_BYTES >> 20} MiB" in text
    assert f"{MAX_IMAGE_BYTES >> 20} MiB" in text
    assert f"{bodies.MAX_RECORDING_BYTES >> 30} GiB" in text


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_verb_that_a_page_names_exists(page: Path) -> None:
    written = re.findall(r"(?:^|`|/|\$\(| && )bullpen ([a-z]+)\b", page.read_text(), re.MULTILINE)
    assert set(written) - set(VERBS) == set()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_of_a_page_is_parsed(page: Path) -> None:
    """Only verbs, options and arguments are checked; other tests run the commands."""
    text = page.read_text()
    for block in FENCED.findall(text):
        for line in block.splitlines():
            parse(line)
    for mentioned in re.findall(r"`(bullpen [^`]+)`", FENCED.sub("", text)):
        with suppress(MissingParameter):  # a sentence may name a verb without its object
            parse(mentioned)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text()
    named = re.findall(r"`(?:\w+=\S+ )*make ([a-z-]+)", text)
    named += re.findall(r"^make ([a-z-]+)", "".join(FENCED.findall(text)), re.MULTILINE)
    written = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(named) - set(written) == set()


def parse(line: str) -> None:
    """Parse a command of Bullpen up to a pipe, `&&` or comment; ignore other lines."""
    if not line.strip().startswith("bullpen "):
        return
    plain = re.sub(r"\$\([^)]*\)", "substituted", line.replace("\n", " "))
    words = shlex.split(re.split(r" \| | && |  # ", plain)[0])[1:]
    command: Any = get_command(app)
    with suppress(Exit):  # --help
        context = command.make_context("bullpen", words)
        while hasattr(command, "resolve_command") and (rest := [*context._protected_args, *context.args]):
            name, command, rest = command.resolve_command(context, rest)
            context = command.make_context(name, rest, parent=context)
