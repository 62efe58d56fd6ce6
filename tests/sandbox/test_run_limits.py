"""What a sandboxed command is wrapped in, and what limits it on a machine without control groups."""

import os
import signal
import subprocess
from collections.abc import Sequence

from bullpen.domain.limits import NO_LIMITS, ResourceLimits
from bullpen.sandbox.profile import OPEN, Profile
from bullpen.sandbox.run_limits import OOM_SCORE, RunLimits

PROFILE = Profile(level="workspace", session="session")
NOBODY = 65534
ENV = {"PATH": os.environ["PATH"]}


def run(limits: ResourceLimits, argv: Sequence[str], user: int | None = None) -> "subprocess.Popen[str]":
    """Run a command within the limits, without a control group."""
    command = RunLimits(limits, None).command(PROFILE, argv, ENV, None)
    return subprocess.Popen(
        command,
        env=ENV,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        user=user,
        cwd="/",
        start_new_session=True,
    )


def test_only_sandboxed_runs_with_limits_are_wrapped() -> None:
    limits = RunLimits(ResourceLimits(processes=100), None)
    assert limits.command(OPEN, ["true"], ENV, None) == ["true"]
    assert RunLimits(NO_LIMITS, None).command(PROFILE, ["true"], ENV, None) == ["true"]
    assert limits.command(PROFILE, ["true"], ENV, None)[-2:] == ["--", "true"]


def test_arguments_and_the_exit_code_are_kept_and_the_kernel_ends_it_first_without_memory() -> None:
    script = 'cat /proc/self/oom_score_adj; printf "%s|" "$@"; exit 7'
    started = run(ResourceLimits(memory=1), ["sh", "-c", script, "sh", "a b", "--", ""])
    assert started.communicate() == (f"{OOM_SCORE}\na b|--||", "")
    assert started.returncode == 7


def test_the_kernel_limits_the_processes_of_an_ordinary_user() -> None:
    many = 'for i in $(seq 2000); do sleep 60 >/dev/null 2>&1 & done; echo "survived"'
    user = NOBODY if os.geteuid() == 0 else None
    started = run(ResourceLimits(processes=20), ["sh", "-c", many], user)
    try:
        output, errors = started.communicate()
    finally:
        os.killpg(started.pid, signal.SIGKILL)
    assert "survived" not in output
    assert "fork" in errors.lower()


def test_what_enforces_each_limit_is_named() -> None:
    limits = RunLimits(ResourceLimits(memory=1 << 30, processes=0, disk=5), None)
    assert [(each.name, each.value, each.enforced_by) for each in limits.describe()] == [
        ("memory", 1 << 30, "server"),
        ("processes", 0, ""),
        ("disk", 5, "server"),
    ]
