"""Look up the agents of this server: built-in ones, those in the user's files, and those added by REST."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog

from ..domain.agents import AgentDefinition, did_you_mean, read_definition
from ..domain.errors import Invalid, NotFound
from ..domain.logins import LoginStatus
from .definitions import load
from .discovery import default_agent, find_program, start_command
from .environment import agent_environment
from .logins import logged_in

log = structlog.get_logger()


class AgentRegistry:
    """All agent definitions by id. An added one overrides a file, and a file overrides a built-in one."""

    def __init__(self, directory: Path, env: Mapping[str, str] = os.environ) -> None:
        self._directory = directory
        self._env = env
        self._added: dict[str, AgentDefinition] = {}

    def add(self, agent_id: str, definition: Mapping[str, Any]) -> AgentDefinition:
        """Add or replace a definition that came by REST, or raise Invalid."""
        checked = read_definition({**definition, "id": agent_id}, f"agent {agent_id}")
        self._added[agent_id] = checked
        return checked

    def restore(self, definitions: Mapping[str, Any]) -> None:
        """Add the stored definitions when the server starts; log and skip those that are not valid."""
        for agent_id, definition in definitions.items():
            try:
                self.add(agent_id, definition)
            except Invalid as error:
                log.warning("an agent definition is skipped", agent=agent_id, problem=str(error))

    def remove(self, agent_id: str) -> None:
        """Remove a definition added by REST, or raise NotFound; a file or built-in one applies again."""
        if agent_id not in self._added:
            raise NotFound(f"no agent {agent_id} was added")
        del self._added[agent_id]

    def all(self) -> list[AgentDefinition]:
        """Return all definitions, including those of agents that are not installed."""
        return list(self._definitions().values())

    def get(self, agent_id: str) -> AgentDefinition:
        """Return a definition, or raise NotFound."""
        definitions = self._definitions()
        if agent_id not in definitions:
            raise NotFound(f"there is no agent {agent_id}{did_you_mean(agent_id, definitions)}")
        return definitions[agent_id]

    def default(self) -> str:
        """Return the id of the agent to start if the caller names none."""
        return default_agent(self._definitions(), self._env)

    def program(self, definition: AgentDefinition) -> str | None:
        """Return the path of the agent's program, or None if it is not installed."""
        return find_program(definition, self._env)

    def logged_in(self, definition: AgentDefinition) -> LoginStatus:
        """Return whether the user is logged in to the agent, as far as files and variables show."""
        return logged_in(definition, self._env)

    def command(self, definition: AgentDefinition, continues: bool = False) -> tuple[str, ...]:
        """Return the command that starts the agent, or that continues its last conversation."""
        return start_command(definition, self._env, continues)

    def environment(self, definition: AgentDefinition) -> dict[str, str]:
        """Return the environment that the agent gets."""
        return agent_environment(definition, self._env)

    def _definitions(self) -> dict[str, AgentDefinition]:
        """Read the files again at each call: the user may have changed one."""
        loaded = load(self._directory)
        for problem in loaded.problems:
            log.warning("an agent definition is skipped", problem=problem)
        return loaded.definitions | self._added
