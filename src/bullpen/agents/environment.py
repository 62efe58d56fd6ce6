"""Build the environment of an agent from the variables that its definition passes on or sets."""

from collections.abc import Mapping

from ..domain.agents import AgentDefinition
from ..domain.environment import inherited_environment


def agent_environment(definition: AgentDefinition, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that an agent gets from `env`; those that its definition sets override them."""
    return {"TERM": "xterm-256color", **inherited_environment(env, definition.pass_env), **definition.env}
