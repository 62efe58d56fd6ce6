"""Every command and configuration of the pages is tried by a test."""

import json
import re
from pathlib import Path

import pytest

from docs.fences import FENCED, PAGES, ROOT, Example, examples, tried, tries, typed
from docs.test_pages import parse

# Page, kind and beginning of what tests with a reading of their own try.
ELSEWHERE = {
    ("README.md", "sh", ""): "test_every_command_of_the_readme_does_what_it_says",
    ("docs/protocol.md", "json ", ""): "test_every_request_of_the_page_is_answered_as_it_says",
    ("docs/operations.md", "sh", "python3 -c"): "test_a_backup_of_a_running_server_brings_its_sessions_"
    "recordings_and_images_back",
    ("docs/operations.md", "sh", "pg_"): "test_a_backup_of_postgresql_brings_its_sessions_back",
    ("", "", "make "): "test_every_target_a_page_names_is_in_the_makefile",
    ("", "sentence", "bullpen "): "test_every_command_a_page_writes_out_is_understood",
}

# Words in the letters of code that are no commands.
SAYINGS = {
    "kill -9",  # a signal, to nobody
    "seq == last + 1",
    "cannot start X: reason",
    "another server runs on …",
    "another server uses this database …",
    "the database has gone back in time …",
    "database is of a newer Bullpen",
    "this server does not answer to that Host",
    "git worktree list",  # what a route is like
    "the server has too many open files",  # tests/faults/test_out_of_descriptors.py
    "fuser bullpen.db",  # of another package
    "ulimit -n",  # of a shell, not a command of ours
    "an exception escaped",  # tests/web/test_uncaught_exceptions.py
}


def is_tried_elsewhere(example: Example) -> bool:
    return any(
        example.page.startswith(page) and example.kind.startswith(kind) and example.text.startswith(begin)
        for page, kind, begin in ELSEWHERE
    )


def is_tried_here(example: Example) -> bool:
    return any(example.page == page and example.text.startswith(begin) for page, begin in tried())


def test_every_example_of_every_page_is_tried() -> None:
    shown = [each for each in examples() if each.kind != "text" and each.text not in SAYINGS]
    assert [each for each in shown if not is_tried_elsewhere(each) and not is_tried_here(each)] == []


def test_nothing_is_excused_that_is_not_shown() -> None:
    assert SAYINGS - {each.text for each in examples()} == set()


def test_the_tests_that_try_examples_elsewhere_are_there() -> None:
    source = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [name for name in ELSEWHERE.values() if f"def {name}(" not in source] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_says_what_it_is(page: Path) -> None:
    assert [body for tag, body in FENCED.findall(page.read_text()) if not tag] == []


@tries(
    "CONTRIBUTING.md",
    "PYTHON=python3.13 make",
    "BULLPEN_FAULTS=full make pytest ARGS=tests/faults",
    'BULLPEN_FAULTS=full make pytest ARGS="tests/fuzz',
    "make serve ARGS",
    "make pytest ARGS",
)
def test_make_understands_the_variables_of_the_page(written: list[str]) -> None:
    for line in written:
        does = typed(line.replace("make ", "make --dry-run --always-make ", 1), ROOT, {})
        given = re.findall(r'(?:ARGS|PYTHON)="?([^"\s]+)', line)
        assert all(value in does for value in given)
        assert all((ROOT / value).exists() for value in given if "/" in value)
        for command in re.findall(r"^\.venv/bin/(bullpen .*)", does, re.MULTILINE):
            parse(command)


@tries("CONTRIBUTING.md", 'PATH="$PWD/.venv/bin:$PATH" npm')
def test_npm_has_the_script_of_the_page(written: list[str]) -> None:
    (prefix, script) = re.findall(r"npm --prefix (\w+) run (\w+)$", written[0])[0]
    assert script in json.loads((ROOT / prefix / "package.json").read_text())["scripts"]
