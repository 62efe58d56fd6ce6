"""The settings that git receives: selected by key, and written so that git reads the same values again."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.git.configuration import (
    Setting,
    has_worktree_config,
    parse_settings,
    render,
    select_of_repository,
    select_of_user,
)
from support.config_keys import planted_settings

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=20)
SUBSECTION = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=20)
NAME = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
KEY = st.one_of(st.builds("{}.{}".format, NAME, NAME), st.builds("{}.{}.{}".format, NAME, SUBSECTION, NAME))


def read_with_git(config: bytes) -> list[Setting]:
    done = subprocess.run(
        ["git", "config", "--file", "-", "--null", "--list"], input=config, capture_output=True, check=True
    )
    return parse_settings(done.stdout)


@given(st.lists(st.tuples(KEY, st.one_of(st.none(), TEXT)), max_size=8))
def test_git_reads_back_exactly_the_settings_that_were_written(settings: list[Setting]) -> None:
    assert read_with_git(render(settings)) == settings


def test_no_setting_that_can_run_a_program_is_selected() -> None:
    planted: list[Setting] = [(key.lower(), value) for _, key, value in planted_settings()]
    assert select_of_user(planted) == []
    assert {key for key, _ in select_of_repository(planted)} == {"core.repositoryformatversion"}


def test_every_extension_is_passed_on_except_the_two_that_lead_elsewhere() -> None:
    settings: list[Setting] = [
        ("extensions.objectformat", "sha256"),
        ("extensions.unheardof", None),
        ("extensions.partialclone", "origin"),
        ("extensions.worktreeconfig", "true"),
    ]
    assert select_of_repository(settings) == settings[:2]


def test_an_excludes_file_is_taken_from_the_user_and_not_from_a_repository() -> None:
    settings: list[Setting] = [("core.excludesfile", "~/.ignore")]
    assert select_of_user(settings) == settings
    assert select_of_repository(settings) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], False), (["true"], True), ([None], True), (["YES"], True), (["true", "false"], False)],
)
def test_the_last_value_decides_whether_worktrees_have_a_configuration(
    values: list[str | None], expected: bool
) -> None:
    assert has_worktree_config([("extensions.worktreeconfig", value) for value in values]) == expected
