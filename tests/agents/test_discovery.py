"""Discovery: installed agents are found, the demo agent always is, and others have an install command."""

import sys
from pathlib import Path

import pytest

from bullpen.agents import discovery
from bullpen.agents.definitions import builtin
from bullpen.agents.discovery import default_agent, find_program, start_command
from bullpen.domain.errors import Conflict


def install(directory: Path, name: str, script: str = "#!/bin/sh\n") -> Path:
    program = directory / name
    program.write_text(script)
    program.chmod(0o755)
    return program


def test_an_installed_agent_is_found_with_its_whole_path(tmp_path: Path) -> None:
    program = install(tmp_path, "gemini")
    env = {"PATH": str(tmp_path)}
    gemini = builtin()["gemini"]
    assert find_program(gemini, env) == str(program)
    assert start_command(gemini, env) == (str(program), "--acp")


def test_the_error_for_a_missing_agent_has_its_install_command(tmp_path: Path) -> None:
    with pytest.raises(Conflict, match="npm install -g @google/gemini-cli"):
        start_command(builtin()["gemini"], {"PATH": str(tmp_path)})


def test_a_file_that_cannot_be_run_is_not_an_agent(tmp_path: Path) -> None:
    install(tmp_path, "gemini").chmod(0o644)
    assert find_program(builtin()["gemini"], {"PATH": str(tmp_path)}) is None


def test_the_demo_agent_is_found_even_if_the_path_is_empty(tmp_path: Path) -> None:
    command = start_command(builtin()["demo"], {"PATH": str(tmp_path)})
    installed = str(Path(sys.executable).parent / "bullpen-demo-agent")
    assert command in [(installed,), (sys.executable, "-m", "bullpen.agents.demo")]


def test_the_default_is_the_first_installed_agent_or_the_demo(tmp_path: Path) -> None:
    env = {"PATH": str(tmp_path), "OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    assert default_agent(builtin(), env) == "demo"
    install(tmp_path, "qwen")
    assert default_agent(builtin(), env) == "qwen"
    install(tmp_path, "codex-acp")
    assert default_agent(builtin(), env) == "codex"
    install(tmp_path, "claude")
    assert default_agent(builtin(), env) == "claude-tui"
    install(tmp_path, "claude-agent-acp")
    assert default_agent(builtin(), env) == "claude"


def test_an_agent_without_a_login_sign_is_the_default_only_if_no_other_is_installed(tmp_path: Path) -> None:
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    install(tmp_path, "claude-agent-acp")
    install(tmp_path, "codex-acp")
    assert default_agent(builtin(), env) == "claude"  # no agent has a login sign, so signs do not count
    assert default_agent(builtin(), env | {"OPENAI_API_KEY": "k"}) == "codex"
    install(tmp_path, "copilot")  # its login sign is unknown
    assert default_agent(builtin(), env) == "copilot"
    assert default_agent(builtin(), env | {"ANTHROPIC_API_KEY": "k"}) == "claude"


def test_every_built_in_agent_can_be_the_default_unless_the_same_program_speaks_acp() -> None:
    known = builtin()
    acp_programs = {each.command[0] for each in known.values() if each.kind == "acp"}
    assert set(discovery.PREFERRED) | {"demo"} == {
        id for id, each in known.items() if each.kind == "acp" or each.command[0] not in acp_programs
    }
