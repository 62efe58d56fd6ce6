"""Find out which mechanism of this machine can run a sandbox: bubblewrap, or Landlock, which is weaker."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from ..domain.sandbox import SandboxLevel
from .bubblewrap import BubblewrapPrograms, bubblewrap_command
from .profile import Profile

TRIAL_SECONDS = 10.0
_APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
_TRIAL = Profile(level="workspace", workspace="/")

INSTALL = (
    "install bubblewrap (Debian, Ubuntu: sudo apt install bubblewrap; Fedora: sudo dnf install bubblewrap)"
)
# Only bwrap may make user namespaces then, unlike with the sysctl, which allows it to every program.
APPARMOR_PROFILE = """abi <abi/4.0>,
include <tunables/global>
profile bwrap /usr/bin/bwrap flags=(unconfined) {
  userns,
  include if exists <local/bwrap>
}"""
ALLOW_IN_APPARMOR = (
    "AppArmor refuses user namespaces to bwrap; write the profile that `bullpen sandbox test` prints to "
    "/etc/apparmor.d/bwrap and run: sudo apparmor_parser -r /etc/apparmor.d/bwrap"
)
ALLOW_NAMESPACES = "this machine or container refuses user namespaces to bwrap; see docs/sandbox.md"

# What Landlock does not protect, in the words of the user.
LANDLOCK_GAPS = (
    "the configuration and the hooks of git in the workspace can be changed",
    "sockets of other programs can be reached by their path",
    "processes of the same user are visible, and their terminals can be written",
    "the directory /tmp is shared",
    "git that the server calls is not in a sandbox",
)


class Mechanism(Struct, frozen=True, kw_only=True):
    """What runs the sandbox on this machine. `problem` says why the stronger mechanism is not used."""

    name: Literal["bubblewrap", "landlock", "none"]
    programs: BubblewrapPrograms | None = None
    problem: str = ""
    advice: str = ""
    gaps: tuple[str, ...] = ()


def find_mechanism(env: Mapping[str, str]) -> Mechanism:
    """Return the strongest mechanism that works, after trying it. It starts programs: call it in a thread."""
    path = env.get("PATH", os.defpath)
    bwrap = shutil.which("bwrap", path=path)
    if bwrap is None:
        return _weaker("bubblewrap is not installed", INSTALL)
    stat = shutil.which("stat", path=path) or "stat"
    bash = shutil.which("bash", path=path)
    # Other shells drop variables such as `npm_config_//example.org/:_authToken`. With -p, bash runs nothing
    # that a variable names.
    shell = (bash, "-p") if bash else ("/bin/sh",)
    problem = ""
    for name in ("env", "gnuenv"):  # some systems have another env by default
        if env_program := shutil.which(name, path=path):
            programs = BubblewrapPrograms(bwrap, env_program, stat, shell)
            problem = _try(programs)
            if not problem:
                return Mechanism(name="bubblewrap", programs=programs)
    return _weaker(problem or "there is no program env", _advice(problem))


def describe_mechanism(found: Mechanism, agents: SandboxLevel) -> str:
    """Return one line for the user: the sandbox of agents, and how to get a better one.

    `agents` is the level of agents without a choice.
    """
    if agents == "open":
        return "Agents run without a sandbox, because of the setting: sandbox = open"
    match found.name:
        case "bubblewrap":
            return "Agents run in a sandbox (bubblewrap), which hides your other files from them."
        case "landlock":
            weaker = f"Agents run in a weaker sandbox (Landlock): {found.problem}."
            return f"{weaker} For the full one: {found.advice}"
        case _:
            return f"Agents cannot be started: {found.problem}. To change that: {found.advice}"


def landlock_abi() -> int:
    """Return the version of Landlock of this kernel, 0 without it."""
    import landlockpy  # noqa: PLC0415 (bubblewrap works without it)

    return int(landlockpy.abi_version())


def _weaker(problem: str, advice: str) -> Mechanism:
    """Return Landlock, or nothing, because bubblewrap does not work."""
    if not landlock_abi():
        return Mechanism(name="none", problem=f"{problem}, and the kernel has no Landlock", advice=advice)
    return Mechanism(name="landlock", problem=problem, advice=advice, gaps=LANDLOCK_GAPS)


def _try(programs: BubblewrapPrograms) -> str:
    """Run a program in a sandbox; return an empty text, or why that failed."""
    command = bubblewrap_command(programs, _TRIAL, ["true"], "/")
    try:
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here: {error}"
    if ended.returncode == 0:
        return ""
    lines = ended.stderr.decode(errors="replace").strip().splitlines()
    return f"bubblewrap does not work here: {lines[-1] if lines else f'exit code {ended.returncode}'}"


def _advice(problem: str) -> str:
    """Return what a user can do about a bubblewrap that does not work."""
    if "env" in problem and "unrecognized option" in problem:
        return "install GNU coreutils 8.31 or newer"
    try:
        with open(_APPARMOR) as file:
            restricted = file.read().strip() == "1"
    except OSError:
        restricted = False
    return ALLOW_IN_APPARMOR if restricted else ALLOW_NAMESPACES
