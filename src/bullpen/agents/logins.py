"""Whether a person is logged in to an agent, by the signs its definition names: a look, never a read."""

import os
import stat
import sys
from collections.abc import Mapping

from ..domain.agents import AgentDefinition
from ..domain.logins import LoginStatus, login_status, sign_path
from .environment import agent_environment


def logged_in(definition: AgentDefinition, env: Mapping[str, str], system: str = sys.platform) -> LoginStatus:
    """By what the agent itself would be given of this environment, and the files it would find."""
    login, given = definition.login, agent_environment(definition, env)
    has_sign = any(given.get(name) for name in login.env) or any(
        _is_there(sign_path(place, given)) for place in login.files
    )
    return login_status(login, has_sign, system)


def _is_there(path: str | None) -> bool:
    """Whether there is a file with something in it."""
    if path is None:
        return False
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0
