"""Run programs in a sandbox with the profile that a server would plan, by either mechanism."""

import os
import subprocess
from pathlib import Path

from bullpen import config
from bullpen.sandbox.command import command_for
from bullpen.sandbox.git_paths import git_paths
from bullpen.sandbox.machine import existing_paths, machine_paths
from bullpen.sandbox.mechanism import LANDLOCK_GAPS, Mechanism, find_mechanism
from bullpen.sandbox.profile import Profile, RunPaths, plan_profile

SECONDS = 60


class SandboxedRuns:
    """A home with secrets, a data directory, two workspaces, and the sandbox of the first one."""

    def __init__(self, directory: Path, mechanism: str = "bubblewrap") -> None:
        self.home = directory / "ada"
        self.data = self.home / ".local/share/bullpen"
        self.workspace = self.home / "work/project"
        self.other = self.home / "work/other"
        self.temporary = self.data / "tmp/session"
        for path in (self.temporary, self.workspace, self.other, self.home / ".ssh", self.home / ".agent"):
            path.mkdir(parents=True, exist_ok=True)
        (self.data / "token").write_text("the token\n")
        (self.home / ".ssh/id_ed25519").write_text("the key\n")
        (self.home / ".bashrc").write_text("# mine\n")
        (self.other / "secret").write_text("theirs\n")
        self.env = {
            **os.environ,
            "HOME": str(self.home),
            "BULLPEN_HOME": str(self.data),
            "BULLPEN_SANDBOX_TOOLCHAINS": os.environ["BULLPEN_SANDBOX_TOOLCHAINS"],
        }
        self.mechanism = _mechanism(mechanism)

    def profile(self, level: str = "workspace") -> Profile:
        settings = config.load({}, self.env)
        machine = machine_paths(settings, [str(self.home / "work")], self.env)
        run = RunPaths(
            workspace=str(self.workspace),
            temporary=str(self.temporary),
            state=existing_paths([str(self.home / ".agent")]),
            git=git_paths(self.workspace),
        )
        return plan_profile(level, machine, run)  # type: ignore[arg-type]

    def run(self, script: str, level: str = "workspace") -> subprocess.CompletedProcess[str]:
        """Run a shell script in the workspace."""
        profile, argv = self.profile(level), ["bash", "-c", script]
        if level != "open":
            argv = command_for(self.mechanism, profile, argv, str(self.workspace))
        return self.execute(argv)

    def execute(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in the workspace, as it is."""
        return subprocess.run(
            command,
            cwd=self.workspace,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            start_new_session=True,
            check=False,
        )

    def start(self, argv: list[str]) -> "subprocess.Popen[str]":
        """Start a program in the workspace, as the leader of a session."""
        command = command_for(self.mechanism, self.profile(), argv, str(self.workspace))
        return subprocess.Popen(
            command,
            cwd=self.workspace,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


def _mechanism(name: str) -> Mechanism:
    if name == "landlock":
        return Mechanism(name="landlock", gaps=LANDLOCK_GAPS)
    found = find_mechanism(os.environ)
    assert found.name == "bubblewrap", found.problem
    return found
