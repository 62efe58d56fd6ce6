"""Every command and configuration of the pages is used by a test."""

import json
import re
from pathlib import Path

import pytest

from docs.page_examples import FENCED, PAGES, ROOT, Example, examples, run_line, used_examples, uses_examples
from docs.test_pages import parse

# Page, kind and prefix of the examples that a test finds in another way.
TESTED_OTHERWISE = {
    ("README.md", "sh", ""): "test_every_command_of_the_readme_does_what_it_says",
    ("docs/protocol.md", "json ", ""): "test_every_request_of_the_page_gets_the_response_of_the_page",
    ("docs/operations.md", "sh", "python3 -c"): "test_a_backup_of_a_running_server_restores_"
    "sessions_recordings_and_images",
    ("docs/operations.md", "sh", "pg_"): "test_a_backup_of_postgresql_restores_its_sessions",
    ("", "", "make "): "test_every_make_target_that_a_page_names_exists",
    ("", "sentence", "bullpen "): "test_every_command_of_a_page_is_parsed",
}

# Texts in code font that look like commands but are none.
NOT_COMMANDS = {
    "kill -9",  # a signal without a process
    "seq == last + 1",
    "cannot start X: reason",
    "another server runs on …",
    "another server uses this database …",
    "the database has gone back in time …",
    "database is of a newer Bullpen",
    "this server does not answer to that Host",
    "git worktree list",  # a comparison with a route
    "git status --short",  # a comparison with a route
    "the server has too many open files",  # tests/faults/test_out_of_descriptors.py
    "fuser bullpen.db",  # a program of another package
    "ulimit -n",  # a command of the shell
    "an exception escaped",  # tests/web/test_uncaught_exceptions.py
}


def is_tested_otherwise(example: Example) -> bool:
    return any(
        example.page.startswith(page) and example.kind.startswith(kind) and example.text.startswith(prefix)
        for page, kind, prefix in TESTED_OTHERWISE
    )


def is_used_by_a_test(example: Example) -> bool:
    return any(example.page == page and example.text.startswith(prefix) for page, prefix in used_examples())


def test_every_example_of_every_page_is_used_by_a_test() -> None:
    shown = [each for each in examples() if each.kind != "text" and each.text not in NOT_COMMANDS]
    assert [each for each in shown if not is_tested_otherwise(each) and not is_used_by_a_test(each)] == []


def test_every_exception_is_a_text_of_a_page() -> None:
    assert NOT_COMMANDS - {each.text for each in examples()} == set()


def test_the_tests_that_use_examples_otherwise_exist() -> None:
    source = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [name for name in TESTED_OTHERWISE.values() if f"def {name}(" not in source] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_names_its_kind(page: Path) -> None:
    assert [body for tag, body in FENCED.findall(page.read_text()) if not tag] == []


@uses_examples(
    "CONTRIBUTING.md",
    "PYTHON=python3.13 make",
    "BULLPEN_FAULTS=full make pytest ARGS=tests/faults",
    'BULLPEN_FAULTS=full make pytest ARGS="tests/fuzz',
    "make serve ARGS",
    "make pytest ARGS",
)
def test_make_understands_the_variables_of_the_page(shown_examples: list[str]) -> None:
    for line in shown_examples:
        commands = run_line(line.replace("make ", "make --dry-run --always-make ", 1), ROOT, {})
        values = re.findall(r'(?:ARGS|PYTHON)="?([^"\s]+)', line)
        assert values
        assert all(value in commands for value in values)
        assert all((ROOT / value).exists() for value in values if "/" in value)
        for command in re.findall(r"^\.venv/bin/(bullpen .*)", commands, re.MULTILINE):
            parse(command)


@uses_examples("CONTRIBUTING.md", 'PATH="$PWD/.venv/bin:$PATH" npm')
def test_npm_has_the_script_of_the_page(shown_examples: list[str]) -> None:
    (prefix, script) = re.findall(r"npm --prefix (\w+) run (\w+)$", shown_examples[0])[0]
    assert script in json.loads((ROOT / prefix / "package.json").read_text())["scripts"]
