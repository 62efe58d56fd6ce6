"""Tell whether the user is logged in to an agent, by files and variables that exist; no file is read."""

import os
import stat
import sys
from collections.abc import Mapping

from ..domain.agents import AgentDefinition
from ..domain.logins import LoginStatus, login_status, sign_path
from .environment import agent_environment


def logged_in(definition: AgentDefinition, env: Mapping[str, str], system: str = sys.platform) -> LoginStatus:
    """Return the login status, by the variables that the agent would get and the files it would find."""
    login, variables = definition.login, agent_environment(definition, env)
    has_sign = any(variables.get(name) for name in login.env) or any(
        _is_nonempty_file(sign_path(file, variables)) for file in login.files
    )
    return login_status(login, has_sign, system)


def _is_nonempty_file(path: str | None) -> bool:
    """Return whether the path names a file that is not empty."""
    if path is None:
        return False
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0
