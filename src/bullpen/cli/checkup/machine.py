"""What Bullpen needs of the machine: Python, git, room on the disk, agents."""

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...client import Agent
from ...config import config_file
from ..text import home_relative
from .finding import Finding, fail, ok, warn

if TYPE_CHECKING:
    from ...domain.agents import AgentDefinition

_MIB = 1 << 20
_LITTLE, _TOO_LITTLE = 1024 * _MIB, 64 * _MIB
_PATIENCE = 10.0  # seconds
_OLDEST_GIT = (2, 38)  # it knows safe.bareRepository; worktree list -z and GIT_CONFIG_COUNT are older
_VERSION = re.compile(r"(\d+)\.(\d+)")


def check_python() -> Finding:
    return ok("python", f"{platform.python_version()} ({home_relative(sys.executable)})")


def check_git(env: Mapping[str, str]) -> Finding:
    program = shutil.which("git", path=env.get("PATH", os.defpath))
    advice = "install git (on Debian: apt install git)"
    if program is None:
        return fail("git", "not on the path", advice)
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True, timeout=_PATIENCE
        )
    except (OSError, subprocess.SubprocessError):
        return fail("git", f"{program} does not say its version", advice)
    said = done.stdout.strip().removeprefix("git version ")
    version = _VERSION.match(said)
    if version is None:
        return fail("git", f"{program} does not say its version", advice)
    if tuple(map(int, version.groups())) < _OLDEST_GIT:
        return fail("git", said, "install git {}.{} or newer".format(*_OLDEST_GIT))
    return ok("git", said)


def check_disk(home: Path) -> Finding:
    place = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(place).free
    found = f"{_size(free)} free where {home_relative(str(home))} is"
    advice = "make room; recordings are what takes it: bullpen rm --purge <session>"
    if free < _TOO_LITTLE:
        return fail("disk", found, advice)
    return warn("disk", found, advice) if free < _LITTLE else ok("disk", found)


def check_agents(env: Mapping[str, str], told: Sequence[Agent] | None = None) -> list[Finding]:
    """By what a running server told us, whose path counts; else by looking from here."""
    from ...agents.definitions import load  # noqa: PLC0415  (only a doctor looks for agents from here)

    loaded = load(config_file(env).parent / "agents")
    here = [_look(each, env) for each in loaded.definitions.values()]
    problems = [warn("agents", problem, "correct or remove that file") for problem in loaded.problems]
    known = _ranked(here if told is None else told)
    if hidden := {each.id for each in here if each.installed} - {each.id for each in known if each.installed}:
        found = f"the server does not find {', '.join(sorted(hidden))}, though this shell does"
        problems.append(warn("agents", found, "restart it with the PATH of this shell"))
    return [_agents(known), *_logins(known), *problems]


def _look(definition: "AgentDefinition", env: Mapping[str, str]) -> Agent:
    """An agent as a server with this environment would tell of it."""
    from ...agents.discovery import find_program  # noqa: PLC0415
    from ...agents.logins import logged_in  # noqa: PLC0415

    return Agent(
        id=definition.id,
        name=definition.name,
        installed=find_program(definition, env) is not None,
        install_hint=definition.install,
        logged_in=logged_in(definition, env),
        login_command=list(definition.login_command),
    )


def _ranked(known: Sequence[Agent]) -> list[Agent]:
    """The one a person most likely wants first, whether it is there or to be installed."""
    from ...agents.discovery import PREFERRED  # noqa: PLC0415

    ranks = {id: rank for rank, id in enumerate(PREFERRED)}
    return sorted(known, key=lambda each: (ranks.get(each.id, len(ranks)), each.id))


def _agents(known: Sequence[Agent]) -> Finding:
    from ...agents.discovery import DEMO  # noqa: PLC0415

    others = [each for each in known if each.id != DEMO]
    if installed := [each.id for each in others if each.installed]:
        return ok("agents", ", ".join([*installed, DEMO]))
    hint = next((f", for example with: {each.install_hint}" for each in others if each.install_hint), "")
    return warn("agents", "only the demo, which needs no model", f"install one{hint}")


def _logins(known: Sequence[Agent]) -> list[Finding]:
    """Those nobody seems to be logged in to, by what they have to be told: only a hint, they may work."""
    lacking: dict[str, list[str]] = {}
    for each in known:
        if each.installed and each.logged_in == "no":
            lacking.setdefault(shlex.join(each.login_command), []).append(each.id)
    return [
        warn(
            "logins", f"no login found for {', '.join(ids)}", f"run: {command}" if command else "log in to it"
        )
        for command, ids in lacking.items()
    ]


def _size(amount: int) -> str:
    return f"{amount / (1024 * _MIB):.1f} GiB" if amount >= 1024 * _MIB else f"{amount // _MIB} MiB"
