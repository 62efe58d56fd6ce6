"""Find the installed programs of agents, and choose the default agent."""

import os
import shutil
import sys
from collections.abc import Mapping

from ..domain.agents import AgentDefinition
from ..domain.errors import Conflict
from ..domain.logins import LoginStatus
from .logins import logged_in

# The agent that a user most likely wants comes first, and ACP before a terminal. The demo agent is used if
# none of these is installed.
PREFERRED = ("claude", "claude-tui", "codex", "codex-tui", "gemini", "opencode", "copilot", "qwen", "aider")
DEMO = "demo"


def find_program(definition: AgentDefinition, env: Mapping[str, str], name: str | None = None) -> str | None:
    """Return the absolute path of an agent's program, or None if it is not installed."""
    name = name or definition.command[0]
    found = shutil.which(name, path=env.get("PATH", os.defpath))
    if found is None and definition.id == DEMO:
        # It is installed beside this Python, which need not be on the path.
        found = shutil.which(name, path=os.path.dirname(sys.executable))
    return os.path.abspath(found) if found else None


def start_command(
    definition: AgentDefinition, env: Mapping[str, str], continues: bool = False
) -> tuple[str, ...]:
    """Return the command with its program's absolute path, or raise Conflict with the install command."""
    command = definition.continue_command if continues else definition.command
    program = find_program(definition, env, command[0])
    if program is not None:
        return (program, *command[1:])
    if definition.id == DEMO:
        return (sys.executable, "-m", "bullpen.agents.demo")
    hint = f"; to install it, run: {definition.install}" if definition.install else ""
    raise Conflict(f"{definition.name} is not installed ({command[0]} is not on the path){hint}")


def default_agent(definitions: Mapping[str, AgentDefinition], env: Mapping[str, str]) -> str:
    """Return the first preferred agent that is installed, those without a login last; else the demo agent."""
    installed = [
        definitions[id] for id in PREFERRED if id in definitions and find_program(definitions[id], env)
    ]
    ready = (each for each in installed if logged_in(each, env) is not LoginStatus.NO)
    return next(ready, installed[0]).id if installed else DEMO
