"""The login status of an agent comes from its login signs: files and variables that the agent would find."""

import os
from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.definitions import builtin
from bullpen.agents.logins import logged_in
from bullpen.domain.agents import AgentDefinition, read_definition
from bullpen.domain.logins import LoginStatus


def definition(**change: Any) -> AgentDefinition:
    login = {"files": ["${AGENT_HOME:-~/.agent}/auth.json"], "env": ["KEY"]}
    body = {
        "id": "mine",
        "name": "Mine",
        "kind": "acp",
        "command": ["mine"],
        "passEnv": ["AGENT_HOME", "KEY"],
    }
    return read_definition(body | {"login": login} | change, "request")


def write_secret(path: Path, content: str = "secret") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def test_a_file_in_the_home_directory_is_a_sign_even_if_it_is_unreadable(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert logged_in(definition(), env) is LoginStatus.NO
    write_secret(tmp_path / ".agent" / "auth.json").chmod(0)
    assert logged_in(definition(), env) is LoginStatus.YES


def test_a_file_is_searched_in_the_directory_that_a_variable_of_the_agent_names(tmp_path: Path) -> None:
    write_secret(tmp_path / "home" / ".agent" / "auth.json")
    env = {"HOME": str(tmp_path / "home"), "AGENT_HOME": str(tmp_path / "elsewhere")}
    assert logged_in(definition(), env) is LoginStatus.NO
    assert logged_in(definition(passEnv=[]), env) is LoginStatus.YES  # the agent does not get the variable
    write_secret(tmp_path / "elsewhere" / "auth.json")
    assert logged_in(definition(), env) is LoginStatus.YES


def test_an_empty_file_or_another_kind_of_file_is_no_sign(tmp_path: Path) -> None:
    env, auth_file = {"HOME": str(tmp_path)}, tmp_path / ".agent" / "auth.json"
    write_secret(auth_file, "")
    assert logged_in(definition(), env) is LoginStatus.NO
    auth_file.unlink()
    auth_file.mkdir()
    assert logged_in(definition(), env) is LoginStatus.NO
    auth_file.rmdir()
    os.mkfifo(auth_file)
    assert logged_in(definition(), env) is LoginStatus.NO


def test_a_symbolic_link_is_followed(tmp_path: Path) -> None:
    auth_file = tmp_path / ".agent" / "auth.json"
    auth_file.parent.mkdir()
    auth_file.symlink_to(tmp_path / "target")
    assert logged_in(definition(), {"HOME": str(tmp_path)}) is LoginStatus.NO
    write_secret(tmp_path / "target")
    assert logged_in(definition(), {"HOME": str(tmp_path)}) is LoginStatus.YES


def test_a_variable_counts_only_if_the_agent_gets_it(tmp_path: Path) -> None:
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
def test_the_login_file_of_a_real_agent_is_found(agent: str, file: str, tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert logged_in(builtin()[agent], env, "linux") in (LoginStatus.NO, LoginStatus.UNKNOWN)
    write_secret(tmp_path / file)
    assert logged_in(builtin()[agent], env, "linux") is LoginStatus.YES


def test_on_macos_the_login_of_claude_is_unknown_because_it_may_be_in_the_keychain(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert logged_in(builtin()["claude"], env, "linux") is LoginStatus.NO
    assert logged_in(builtin()["claude"], env, "darwin") is LoginStatus.UNKNOWN


def test_the_demo_needs_no_login_and_an_agent_without_signs_has_an_unknown_status(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert logged_in(builtin()["demo"], env) is LoginStatus.NONE
    assert logged_in(definition(login={}), env) is LoginStatus.UNKNOWN
