"""An agent gets what any program needs and what its definition lists; never a secret of ours."""

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


def test_an_agent_gets_what_any_program_needs() -> None:
    given = agent_environment(agent(), SERVER)
    assert given == {
        "HOME": "/home/ann",
        "PATH": "/bin",
        "LANG": "C.UTF-8",
        "LC_ALL": "C",
        "XDG_CONFIG_HOME": "/c",
        "HTTPS_PROXY": "http://proxy",
        "TERM": "xterm-256color",
    }


def test_an_agent_gets_what_its_definition_lists_and_sets() -> None:
    given = agent_environment(
        agent(pass_env=("ANTHROPIC_API_KEY", "NOT_SET"), env={"LANG": "de", "MINE": "x"}), SERVER
    )
    assert given["ANTHROPIC_API_KEY"] == "key"
    assert "NOT_SET" not in given
    assert (given["LANG"], given["MINE"]) == ("de", "x")


@pytest.mark.parametrize(
    "name", ["BULLPEN_TOKEN", "BULLPEN_DATABASE_URL", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"]
)
def test_our_secrets_and_the_traces_of_an_outer_agent_are_never_inherited(name: str) -> None:
    assert name not in agent_environment(agent(pass_env=(name,)), SERVER)


def test_the_terminal_of_the_server_is_kept() -> None:
    assert agent_environment(agent(), SERVER | {"TERM": "screen"})["TERM"] == "screen"
