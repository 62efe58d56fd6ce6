"""An agent gets the usual variables and those of its definition, but never a secret of Bullpen."""

from typing import Any

import pytest

from bullpen.agents.environment import agent_environment
from bullpen.domain.agents import AgentDefinition

SERVER = {
    "HOME": "/home/ann",
    "PATH": "/bin",
    "LANG": "C.UTF-8",
    "LC_ALL": "C",
    "XDG_CONFIG_HOME": "/c",
    "HTTPS_PROXY": "http://proxy",
    "BULLPEN_TOKEN": "secret",
    "BULLPEN_DATABASE_URL": "postgresql://secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "ANTHROPIC_API_KEY": "key",
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "CLAUDE_CODE_SSE_PORT": "1234",
    "PYTHONPATH": "/ours",
}


def agent(**changes: Any) -> AgentDefinition:
    return AgentDefinition(id="a", name="A", kind="acp", command=("a",), **changes)


def test_an_agent_gets_the_variables_that_every_program_needs() -> None:
    env = agent_environment(agent(), SERVER)
    assert env == {
        "HOME": "/home/ann",
        "PATH": "/bin",
        "LANG": "C.UTF-8",
        "LC_ALL": "C",
        "XDG_CONFIG_HOME": "/c",
        "HTTPS_PROXY": "http://proxy",
        "TERM": "xterm-256color",
    }


def test_an_agent_gets_the_variables_that_its_definition_lists_and_sets() -> None:
    env = agent_environment(
        agent(pass_env=("ANTHROPIC_API_KEY", "NOT_SET"), env={"LANG": "de", "MINE": "x"}), SERVER
    )
    assert env["ANTHROPIC_API_KEY"] == "key"
    assert "NOT_SET" not in env
    assert (env["LANG"], env["MINE"]) == ("de", "x")


@pytest.mark.parametrize(
    "name", ["BULLPEN_TOKEN", "BULLPEN_DATABASE_URL", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"]
)
def test_secrets_of_bullpen_and_variables_of_an_agent_around_the_server_are_never_inherited(
    name: str,
) -> None:
    assert name not in agent_environment(agent(pass_env=(name,)), SERVER)


def test_the_terminal_of_the_server_is_kept() -> None:
    assert agent_environment(agent(), SERVER | {"TERM": "screen"})["TERM"] == "screen"
