"""Check what Bullpen needs of the machine: Python, git, disk space and agents."""

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
_WARN_FREE_BYTES, _MIN_FREE_BYTES = 1024 * _MIB, 64 * _MIB
_TIMEOUT_SECONDS = 10.0
_MIN_GIT_VERSION = (2, 38)  # for safe.bareRepository; worktree list -z and GIT_CONFIG_COUNT are older
_VERSION = re.compile(r"(\d+)\.(\d+)")


def check_python() -> Finding:
    """Report the version of Python."""
    return ok("python", f"{platform.python_version()} ({home_relative(sys.executable)})")


def check_git(env: Mapping[str, str]) -> Finding:
    """Check that git is installed and new enough."""
    program = shutil.which("git", path=env.get("PATH", os.defpath))
    advice = "install git (on Debian: apt install git)"
    if program is None:
        return fail("git", "not on the path", advice)
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True, timeout=_TIMEOUT_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return fail("git", f"{program} does not print its version", advice)
    text = done.stdout.strip().removeprefix("git version ")
    version = _VERSION.match(text)
    if version is None:
        return fail("git", f"{program} does not print its version", advice)
    if tuple(map(int, version.groups())) < _MIN_GIT_VERSION:
        return fail("git", text, "install git {}.{} or newer".format(*_MIN_GIT_VERSION))
    return ok("git", text)


def check_sandbox(env: Mapping[str, str]) -> Finding:
    """Check what can enforce the sandbox of agents."""
    from ...sandbox.mechanism import find_mechanism  # noqa: PLC0415  (only this check needs it)

    found = find_mechanism(env)
    match found.name:
        case "bubblewrap":
            return ok("sandbox", "bubblewrap")
        case "landlock":
            gaps = "; ".join(found.gaps)
            return warn("sandbox", f"Landlock, which is weaker ({found.problem}): {gaps}", found.advice)
        case _:
            return fail("sandbox", f"agents cannot be started: {found.problem}", found.advice)


def check_disk(home: Path) -> Finding:
    """Check the free space on the file system of the data directory."""
    existing = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    found = f"{_format_size(free)} free where {home_relative(str(home))} is"
    advice = "free some space; recordings use most: bullpen rm --purge <session>"
    if free < _MIN_FREE_BYTES:
        return fail("disk", found, advice)
    return warn("disk", found, advice) if free < _WARN_FREE_BYTES else ok("disk", found)


def check_agents(env: Mapping[str, str], from_server: Sequence[Agent] | None = None) -> list[Finding]:
    """Check which agents a running server finds on its PATH; without a server, on the PATH of `env`."""
    from ...agents.definitions import load  # noqa: PLC0415  (only this check needs it)

    loaded = load(config_file(env).parent / "agents")
    here = [_inspect(each, env) for each in loaded.definitions.values()]
    problems = [warn("agents", problem, "correct or remove that file") for problem in loaded.problems]
    known = _rank(here if from_server is None else from_server)
    if hidden := {each.id for each in here if each.installed} - {each.id for each in known if each.installed}:
        found = f"the server does not find {', '.join(sorted(hidden))}, although this shell does"
        problems.append(warn("agents", found, "restart it with the PATH of this shell"))
    return [_check_installed(known), *_check_logins(known), *problems]


def _inspect(definition: "AgentDefinition", env: Mapping[str, str]) -> Agent:
    """Return an agent as a server with this environment would describe it."""
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


def _rank(known: Sequence[Agent]) -> list[Agent]:
    """Return the agents sorted by preference, installed or not."""
    from ...agents.discovery import PREFERRED  # noqa: PLC0415

    ranks = {id: rank for rank, id in enumerate(PREFERRED)}
    return sorted(known, key=lambda each: (ranks.get(each.id, len(ranks)), each.id))


def _check_installed(known: Sequence[Agent]) -> Finding:
    """Check that an agent other than the demo is installed."""
    from ...agents.discovery import DEMO  # noqa: PLC0415

    others = [each for each in known if each.id != DEMO]
    if installed := [each.id for each in others if each.installed]:
        return ok("agents", ", ".join([*installed, DEMO]))
    hint = next((f", for example with: {each.install_hint}" for each in others if each.install_hint), "")
    return warn("agents", "only the demo, which needs no model", f"install one{hint}")


def _check_logins(known: Sequence[Agent]) -> list[Finding]:
    """Warn of installed agents without a login, grouped by login command; they may work nevertheless."""
    by_command: dict[str, list[str]] = {}
    for each in known:
        if each.installed and each.logged_in == "no":
            by_command.setdefault(shlex.join(each.login_command), []).append(each.id)
    return [
        warn(
            "logins", f"no login found for {', '.join(ids)}", f"run: {command}" if command else "log in to it"
        )
        for command, ids in by_command.items()
    ]


def _format_size(amount: int) -> str:
    """Return a number of bytes in MiB or GiB."""
    return f"{amount / (1024 * _MIB):.1f} GiB" if amount >= 1024 * _MIB else f"{amount // _MIB} MiB"
