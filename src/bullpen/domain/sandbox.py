"""The levels of the sandbox, and which level applies to a run."""

from typing import Literal

from .errors import Forbidden

SandboxLevel = Literal["open", "workspace", "sealed"]

LEVELS: tuple[SandboxLevel, ...] = ("open", "workspace", "sealed")  # from the weakest to the strictest
DEFAULT_LEVEL: SandboxLevel = "workspace"  # of an agent for which no level is set


def strictest(*levels: SandboxLevel | None) -> SandboxLevel | None:
    """Return the strictest of the levels that are set, or None if none is set."""
    return max((level for level in levels if level is not None), key=LEVELS.index, default=None)


def agent_level(*levels: SandboxLevel | None) -> SandboxLevel:
    """Return the level of an agent, given those set for it, its session, its repository and the server."""
    return strictest(*levels) or DEFAULT_LEVEL


def check_delegate_level(level: SandboxLevel | None) -> None:
    """Raise Forbidden if a delegate asks for less than the default: it is an agent itself."""
    if level is not None and LEVELS.index(level) < LEVELS.index(DEFAULT_LEVEL):
        raise Forbidden(f"a delegate may not start sessions with the sandbox level {level}")
