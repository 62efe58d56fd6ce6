"""Collect the paths of this machine and of one run, and plan the profile of the run."""

import os
from collections.abc import Mapping
from pathlib import Path

from .. import clock
from ..config import Config
from ..domain.agents import AgentDefinition
from ..domain.logins import sign_path
from ..domain.sandbox import SandboxLevel
from .git_paths import git_paths
from .installations import program_roots
from .machine import existing_paths, machine_paths
from .profile import OPEN, MachinePaths, Mount, Profile, RunPaths, plan_profile
from .removing import remove_tree
from .roots import WorkspaceRoots

MAX_AGE_SECONDS = 2.0  # of the paths of the machine


class SandboxPlanner:
    """Plans profiles for the runs of one server."""

    def __init__(self, config: Config, roots: WorkspaceRoots) -> None:
        self._config = config
        self._roots = roots
        self._machine: MachinePaths | None = None
        self._planned_for: tuple[str, ...] = ()
        self._read_at = 0.0

    def plan(
        self,
        level: SandboxLevel,
        session_id: str,
        workspace: str,
        env: Mapping[str, str],
        definition: AgentDefinition | None = None,
        granted: tuple[Mount, ...] = (),
        proxy: Path | None = None,
    ) -> Profile:
        """Return the profile of a run in a session.

        `definition` is that of the agent that runs in it, `granted` what users have allowed, and `proxy` the
        directory with the socket of the proxy, for a sealed run.
        """
        if level == "open":
            return OPEN
        machine = self.machine_paths(env)
        run = RunPaths(
            workspace=workspace,
            session=session_id,
            temporary=str(self.temporary_directory(session_id)),
            state=existing_paths(_state_of(definition, env)) if definition else (),
            programs=existing_paths(_programs_of(definition, env, machine)) if definition else (),
            shown=existing_paths([str(self._config.home / "images" / session_id)]),
            granted=granted,
            git=git_paths(Path(workspace)),
        )
        return plan_profile(level, machine, run, str(proxy) if proxy else None)

    def temporary_directory(self, session_id: str) -> Path:
        """Return the directory that all sandboxed runs of a session see as /tmp; make it if necessary."""
        directory = self._config.home / "tmp" / session_id
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return directory

    def proxy_directory(self, worker_id: str) -> Path:
        """Return the directory of the socket of a sealed run's proxy; make it if necessary."""
        directory = self._config.home / "proxy" / worker_id
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return directory

    def remove_temporary_directory(self, session_id: str) -> None:
        """Remove the directory that the runs of a session saw as /tmp, if there is one."""
        directory = self._config.home / "tmp" / session_id
        if directory.exists():
            remove_tree(directory)

    def machine_paths(self, env: Mapping[str, str]) -> MachinePaths:
        """Return the paths of this machine, read again after a moment, or if a cache was removed."""
        roots = tuple(map(str, self._roots.directories()))
        key = (*roots, env.get("PATH", ""))
        if (
            self._machine is None
            or key != self._planned_for
            or clock.monotonic() - self._read_at > MAX_AGE_SECONDS
            or not all(map(os.path.exists, self._machine.caches))
        ):
            self._machine = machine_paths(self._config, roots, env)
            self._planned_for, self._read_at = key, clock.monotonic()
        return self._machine


def _state_of(definition: AgentDefinition, env: Mapping[str, str]) -> list[str]:
    """Return the paths of an agent's state. A directory (`…/`) that does not exist is made."""
    paths = []
    for template in definition.state:
        path = sign_path(template, {**env, **definition.env})
        if path is None:
            continue
        if path.endswith("/"):
            os.makedirs(path, mode=0o700, exist_ok=True)
        paths.append(os.path.normpath(path))
    return paths


def _programs_of(definition: AgentDefinition, env: Mapping[str, str], machine: MachinePaths) -> list[str]:
    """Return where the programs of an agent are installed."""
    commands = (definition.command, definition.continue_command, definition.title_command)
    names = dict.fromkeys(command[0] for command in commands if command)
    return [root for name in names for root in program_roots(name, env, machine.homes)]
