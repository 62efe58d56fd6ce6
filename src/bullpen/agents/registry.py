"""All agents of this server by id: the ones that come with us, the user's files, and those added by REST."""

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
    """Later ones win: a file over ours, one that was added over a file."""

    def __init__(self, directory: Path, env: Mapping[str, str] = os.environ) -> None:
        self._directory = directory
        self._env = env
        self._added: dict[str, AgentDefinition] = {}

    def add(self, agent_id: str, definition: Mapping[str, Any]) -> AgentDefinition:
        """Takes a definition that was added by REST; Invalid says what is wrong with it."""
        made = read_definition({**definition, "id": agent_id}, f"agent {agent_id}")
        self._added[agent_id] = made
        return made

    def take_up(self, definitions: Mapping[str, Any]) -> None:
        """The ones that were added before; one that is wrong by now is left out, and said so."""
        for agent_id, definition in definitions.items():
            try:
                self.add(agent_id, definition)
            except Invalid as error:
                log.warning("an agent definition is left out", agent=agent_id, problem=str(error))

    def remove(self, agent_id: str) -> None:
        """Forgets an added one; what it stood in front of is there again."""
        if agent_id not in self._added:
            raise NotFound(f"no agent {agent_id} was added")
        del self._added[agent_id]

    def all(self) -> list[AgentDefinition]:
        return list(self._definitions().values())

    def get(self, agent_id: str) -> AgentDefinition:
        definitions = self._definitions()
        if agent_id not in definitions:
            raise NotFound(f"there is no agent {agent_id}{did_you_mean(agent_id, definitions)}")
        return definitions[agent_id]

    def default(self) -> str:
        """The one to start when nobody says which."""
        return default_agent(self._definitions(), self._env)

    def program(self, definition: AgentDefinition) -> str | None:
        """Where its program is; None when it is not installed."""
        return find_program(definition, self._env)

    def logged_in(self, definition: AgentDefinition) -> LoginStatus:
        """Whether a person is logged in to it, as far as signs tell."""
        return logged_in(definition, self._env)

    def command(self, definition: AgentDefinition, continues: bool = False) -> tuple[str, ...]:
        """How it is started, or started again where its last conversation ended."""
        return start_command(definition, self._env, continues)

    def environment(self, definition: AgentDefinition) -> dict[str, str]:
        return agent_environment(definition, self._env)

    def _definitions(self) -> dict[str, AgentDefinition]:
        """Read anew each time: a person may just have written one."""
        loaded = load(self._directory)
        for problem in loaded.problems:
            log.warning("an agent definition is left out", problem=problem)
        return loaded.definitions | self._added
