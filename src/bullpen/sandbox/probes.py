"""Try the sandbox of this machine: attempt, at each level, what the level must prevent."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from .. import config
from ..domain.sandbox import LEVELS, SandboxLevel
from .command import command_for
from .git_paths import git_paths
from .machine import machine_paths
from .mechanism import Mechanism
from .probe_stage import ProbeStage
from .profile import RunPaths, plan_profile

PROGRAM = Path(__file__).with_name("probe_program.py")
MARK = "written by a probe"
TIMEOUT_SECONDS = 300.0

From = Literal["workspace", "sealed", "never"]


class Probe(Struct, frozen=True):
    """One attempt, and the level from which on each mechanism prevents it."""

    name: str
    kind: str
    arguments: tuple[Any, ...]
    bubblewrap: From = "workspace"
    landlock: From = "workspace"
    written: Path | None = None  # judged by the content of this file afterwards


class ProbeResult(Struct, frozen=True, kw_only=True):
    """The outcome of a probe at one level."""

    probe: str
    level: SandboxLevel
    succeeded: bool
    expected: bool

    @property
    def is_right(self) -> bool:
        """Whether the attempt had the expected result."""
        return self.succeeded == self.expected


def run_probes(mechanism: Mechanism, env: Mapping[str, str]) -> list[ProbeResult]:
    """Run all probes at each level that the mechanism has, below a new temporary directory."""
    with (
        tempfile.TemporaryDirectory(prefix="bullpen-probes-") as directory,
        ProbeStage(Path(os.path.realpath(directory))).opened() as stage,
    ):
        return [each for level in _levels(mechanism) for each in _run_at(level, mechanism, stage, env)]


def list_probes(stage: ProbeStage) -> list[Probe]:
    """Return the probes that can succeed on this machine without a sandbox."""
    return [each for each in _all_probes(stage) if each.kind not in _impossible(stage)]


def _levels(mechanism: Mechanism) -> tuple[SandboxLevel, ...]:
    """Return the levels that a mechanism can enforce."""
    return LEVELS if mechanism.name == "bubblewrap" else LEVELS[:-1]


def _impossible(stage: ProbeStage) -> set[str]:
    """Return the kinds that fail here even at the level open."""
    found = set()
    if os.geteuid() != 0:
        found |= {"rewrite", "raw", "mount", "device", "capabilities"}
    if not stage.tcp6:
        found.add("connect_tcp6")
    with open("/proc/self/status") as status:
        if "NoNewPrivs:\t1" in status.read():
            found.add("privileges")
    return found


def _run_at(
    level: SandboxLevel, mechanism: Mechanism, stage: ProbeStage, env: Mapping[str, str]
) -> Iterator[ProbeResult]:
    """Run the probes at one level, and compare the results with those that are expected."""
    before = {path: path.read_bytes() for path in _protected_files(stage)}
    probes = list_probes(stage)
    order = json.dumps({each.name: [each.kind, each.arguments] for each in probes})
    argv = [sys.executable, "-I", "-S", str(PROGRAM), order]
    environment = {**env, "HOME": str(stage.home)}
    workspace = str(stage.workspace)
    if level != "open":
        argv = command_for(mechanism, _profile(level, stage, environment), argv, workspace)
    done = subprocess.run(
        argv,
        cwd=workspace,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        start_new_session=True,
        check=True,
    )
    succeeded = json.loads(done.stdout)
    for each in probes:
        outcome = succeeded[each.name] if each.written is None else MARK in each.written.read_text()
        yield ProbeResult(
            probe=each.name, level=level, succeeded=outcome, expected=_expected(each, level, mechanism)
        )
    for path, content in before.items():
        path.write_bytes(content)


def _expected(probe: Probe, level: SandboxLevel, mechanism: Mechanism) -> bool:
    """Return whether an attempt succeeds at a level."""
    prevented_from = probe.landlock if mechanism.name == "landlock" else probe.bubblewrap
    return prevented_from == "never" or LEVELS.index(level) < LEVELS.index(prevented_from)


def _profile(level: SandboxLevel, stage: ProbeStage, env: Mapping[str, str]) -> Any:
    """Return the sandbox profile of a run of the probes at a level, in the workspace of the stage."""
    variables = {"HOME": str(stage.home), "BULLPEN_HOME": str(stage.data)}
    toolchains = env.get("BULLPEN_SANDBOX_TOOLCHAINS")
    settings = config.load({}, variables | ({"BULLPEN_SANDBOX_TOOLCHAINS": toolchains} if toolchains else {}))
    machine = machine_paths(settings, [str(stage.home / "projects")], env, [stage.home])
    run = RunPaths(
        workspace=str(stage.workspace), temporary=str(stage.temporary), git=git_paths(stage.workspace)
    )
    return plan_profile(level, machine, run)


def _protected_files(stage: ProbeStage) -> list[Path]:
    """Return the files that no probe may change; their content is compared before and after."""
    return [*stage.files, stage.workspace / ".git/config", stage.workspace / ".git/HEAD"]


def _all_probes(stage: ProbeStage) -> list[Probe]:
    """Return all probes. Not prevented are: what the network of a run reaches, and the gaps of Landlock."""
    data, home, git = stage.data, stage.home, stage.workspace / ".git"
    victim = stage.victim
    probes = [
        Probe("read the owner's token", "read", (str(data / "token"),)),
        Probe("read the database", "read", (str(data / "bullpen.db"),)),
        Probe("read a recording", "read", (str(data / "spool/worker/1/out/0"),)),
        Probe("read another workspace", "read", (str(stage.other / "file"),)),
        Probe("read an SSH key", "read", (str(home / ".ssh/id_ed25519"),)),
        Probe("read through a hard link", "hard_link", (str(data / "token"),)),
        Probe("read through a symbolic link", "symbolic_link", (str(data / "token"),)),
        Probe("read the environment of a process", "read", (f"/proc/{victim}/environ",)),
        Probe("read the mappings of a process", "read", (f"/proc/{victim}/maps",)),
        Probe("read the memory of a process", "read_memory", (victim,)),
        Probe("signal a process", "signal", (victim,)),
        Probe("trace a process", "trace", (victim,)),
        Probe("type into another terminal", "terminal", (stage.terminal,), landlock="never"),
        Probe("connect to the keeper", "connect_path", (str(data / "keeper.sock"),), landlock="never"),
        Probe("connect to a daemon", "connect_path", (str(home / "daemon.sock"),), landlock="never"),
        Probe("connect to an abstract socket", "connect_abstract", (stage.abstract,), bubblewrap="sealed"),
        Probe("connect by TCP", "connect_tcp", ("127.0.0.1", stage.tcp), "sealed", "never"),
        Probe("connect by IPv6", "connect_tcp6", ("::1", stage.tcp6), "sealed", "never"),
        Probe("send by UDP", "connect_udp", ("127.0.0.1", stage.udp), "sealed", "never"),
        Probe("open a raw socket", "raw", ()),
        Probe("mount", "mount", (str(stage.workspace),)),
        Probe("unmount what hides a file", "unmount", (str(data / "token"), [str(data), str(home)])),
        Probe("leave by chroot", "chroot", (str(data / "token"),)),
        Probe("make a device", "device", ()),
        Probe("change a setting of the kernel", "rewrite", ("/proc/sys/vm/swappiness",)),
        Probe("change the handler of core dumps", "rewrite", ("/proc/sys/kernel/core_pattern",)),
        Probe("use a setuid program", "privileges", ()),
        Probe("use a capability", "capabilities", ()),
    ]
    written = {
        "write the start file of the shell": home / ".bashrc",
        "write the start file of the login": home / ".profile",
        "write an autostart file": home / ".config/autostart/a.desktop",
        "write the configuration of Bullpen": home / ".config/bullpen/config.toml",
        "write an agent definition": home / ".config/bullpen/agents/mine.toml",
        "write another workspace": stage.other / "file",
    }
    probes += [Probe(name, "write", (str(path),), written=path) for name, path in written.items()]
    config_file, hook = git / "config", git / "hooks/post-checkout"
    return [
        *probes,
        Probe("write a hook of git", "write", (str(hook),), landlock="never"),
        Probe("write the configuration of git", "write", (str(config_file),), landlock="never"),
        Probe("replace the configuration of git", "replace", (str(config_file),), landlock="never"),
    ]
