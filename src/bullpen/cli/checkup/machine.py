"""What Bullpen needs of the machine: Python, git, room on the disk, agents."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ...client import Agent
from ...config import config_file
from ..text import home_relative
from .finding import Finding, fail, ok, warn

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
    from ...agents.discovery import find_program  # noqa: PLC0415

    loaded = load(config_file(env).parent / "agents")
    here = {each.id for each in loaded.definitions.values() if find_program(each, env)}
    problems = [warn("agents", problem, "correct or remove that file") for problem in loaded.problems]
    if told is None:
        installs = {each.id: each.install for each in loaded.definitions.values()}
        return [_agents(here, installs), *problems]
    there = {each.id for each in told if each.installed}
    if hidden := here - there:
        found = f"the server does not find {', '.join(sorted(hidden))}, though this shell does"
        problems.append(warn("agents", found, "restart it with the PATH of this shell"))
    return [_agents(there, {each.id: each.install_hint for each in told}), *problems]


def _agents(there: Collection[str], installs: Mapping[str, str]) -> Finding:
    """The one a person most likely wants first, whether it is there or to be installed."""
    from ...agents.discovery import DEMO, PREFERRED  # noqa: PLC0415

    ranks = {id: rank for rank, id in enumerate(PREFERRED)}
    others = sorted(installs.keys() - {DEMO}, key=lambda id: (ranks.get(id, len(ranks)), id))
    if installed := [id for id in others if id in there]:
        return ok("agents", ", ".join([*installed, DEMO]))
    hint = next((f", for example with: {installs[id]}" for id in others if installs[id]), "")
    return warn("agents", "only the demo, which needs no model", f"install one{hint}")


def _size(amount: int) -> str:
    return f"{amount / (1024 * _MIB):.1f} GiB" if amount >= 1024 * _MIB else f"{amount // _MIB} MiB"
