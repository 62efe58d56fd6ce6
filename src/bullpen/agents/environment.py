"""The environment of an agent: what any program inherits, what its definition lists, what that sets."""

from collections.abc import Mapping

from ..domain.agents import AgentDefinition
from ..domain.environment import inherited_environment


def agent_environment(definition: AgentDefinition, env: Mapping[str, str]) -> dict[str, str]:
    """What an agent is given of the server's environment; values the definition sets come last."""
    return {"TERM": "xterm-256color", **inherited_environment(env, definition.pass_env), **definition.env}
