"""Whether a person is logged in is told by real files and variables, those the agent itself would find."""

import os
from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.definitions import builtin
from bullpen.agents.logins import logged_in
from bullpen.domain.agents import AgentDefinition, read_definition
from bullpen.domain.logins import LoginStatus


def definition(**change: Any) -> AgentDefinition:
    login = {"files": ["${AT:-~/.agent}/auth.json"], "env": ["KEY"]}
    body = {"id": "mine", "name": "Mine", "kind": "acp", "command": ["mine"], "passEnv": ["AT", "KEY"]}
    return read_definition(body | {"login": login} | change, "request")


def leave(path: Path, content: str = "secret") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def test_a_file_in_the_home_is_a_sign_even_when_nobody_may_read_it(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert logged_in(definition(), env) is LoginStatus.NO
    leave(tmp_path / ".agent" / "auth.json").chmod(0)
    assert logged_in(definition(), env) is LoginStatus.YES


def test_a_file_is_looked_for_where_a_variable_of_the_agent_moves_it(tmp_path: Path) -> None:
    leave(tmp_path / "home" / ".agent" / "auth.json")
    env = {"HOME": str(tmp_path / "home"), "AT": str(tmp_path / "elsewhere")}
    assert logged_in(definition(), env) is LoginStatus.NO
    assert logged_in(definition(passEnv=[]), env) is LoginStatus.YES  # the agent never hears of it
    leave(tmp_path / "elsewhere" / "auth.json")
    assert logged_in(definition(), env) is LoginStatus.YES


def test_what_is_empty_or_no_file_is_no_sign(tmp_path: Path) -> None:
    env, place = {"HOME": str(tmp_path)}, tmp_path / ".agent" / "auth.json"
    leave(place, "")
    assert logged_in(definition(), env) is LoginStatus.NO
    place.unlink()
    place.mkdir()
    assert logged_in(definition(), env) is LoginStatus.NO
    place.rmdir()
    os.mkfifo(place)
    assert logged_in(definition(), env) is LoginStatus.NO


def test_a_link_is_followed_to_what_is_there(tmp_path: Path) -> None:
    place = tmp_path / ".agent" / "auth.json"
    place.parent.mkdir()
    place.symlink_to(tmp_path / "kept")
    assert logged_in(definition(), {"HOME": str(tmp_path)}) is LoginStatus.NO
    leave(tmp_path / "kept")
    assert logged_in(definition(), {"HOME": str(tmp_path)}) is LoginStatus.YES


def test_a_variable_counts_when_the_agent_is_given_it(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "KEY": "k"}
    assert logged_in(definition(), env) is LoginStatus.YES
    assert logged_in(definition(passEnv=[]), env) is LoginStatus.NO
    assert logged_in(definition(), env | {"KEY": ""}) is LoginStatus.NO
    assert logged_in(definition(passEnv=[], env={"KEY": "k"}), {"HOME": str(tmp_path)}) is LoginStatus.YES


@pytest.mark.parametrize(
    ("agent", "file"),
    [
        ("claude", ".claude/.credentials.json"),
        ("codex", ".codex/auth.json"),
        ("gemini", ".gemini/oauth_creds.json"),
        ("opencode", ".local/share/opencode/auth.json"),
        ("qwen", ".qwen/oauth_creds.json"),
        ("aider", ".aider/oauth-keys.env"),
    ],
)
def test_the_login_of_a_real_agent_is_found_where_it_leaves_it(agent: str, file: str, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert logged_in(builtin()[agent], env, "linux") in (LoginStatus.NO, LoginStatus.UNKNOWN)
    leave(tmp_path / file)
    assert logged_in(builtin()[agent], env, "linux") is LoginStatus.YES


def test_on_a_mac_nobody_knows_what_is_in_the_keychain_of_claude(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert logged_in(builtin()["claude"], env, "linux") is LoginStatus.NO
    assert logged_in(builtin()["claude"], env, "darwin") is LoginStatus.UNKNOWN


def test_the_demo_needs_no_login_and_who_names_no_signs_leaves_it_open(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert logged_in(builtin()["demo"], env) is LoginStatus.NONE
    assert logged_in(definition(login={}), env) is LoginStatus.UNKNOWN
