"""What a sandboxed command is wrapped in, and what limits it on a machine without control groups."""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bullpen.domain.limits import NO_LIMITS, ResourceLimits
from bullpen.sandbox import limit_launcher
from bullpen.sandbox.limit_launcher import NICENESS, OOM_SCORE
from bullpen.sandbox.profile import OPEN, Profile
from bullpen.sandbox.run_limits import RunLimits
from support.other_user import SYSTEM_PYTHON

PROFILE = Profile(level="workspace", session="session")
NOBODY = 65534
HAS_AUTOGROUPS = Path("/proc/self/autogroup").exists()
ENV = {"PATH": os.environ["PATH"]}


def run(limits: ResourceLimits, argv: Sequence[str]) -> "subprocess.Popen[str]":
    """Run a command within the limits, without a control group."""
    command = RunLimits(limits, None).command(PROFILE, argv, None)
    return subprocess.Popen(
        command,
        env=ENV,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
        start_new_session=True,
    )


def test_only_sandboxed_runs_with_limits_are_wrapped() -> None:
    limits = RunLimits(ResourceLimits(processes=100), None)
    assert limits.command(OPEN, ["true"], None) == ["true"]
    assert RunLimits(NO_LIMITS, None).command(PROFILE, ["true"], None) == ["true"]
    assert limits.command(PROFILE, ["true"], None)[-2:] == ["--", "true"]


def test_arguments_and_the_exit_code_are_kept_and_the_kernel_ends_it_first_without_memory() -> None:
    script = 'cat /proc/self/oom_score_adj; printf "%s|" "$@"; exit 7'
    started = run(ResourceLimits(memory=1), ["sh", "-c", script, "sh", "a b", "--", ""])
    assert started.communicate() == (f"{OOM_SCORE}\na b|--||", "")
    assert started.returncode == 7


def test_a_run_and_the_group_of_its_session_have_a_low_priority() -> None:
    started = run(ResourceLimits(memory=1), ["sh", "-c", "nice; cat /proc/self/autogroup"])
    niceness, _, group = started.communicate()[0].partition("\n")
    assert niceness == str(NICENESS)
    assert not HAS_AUTOGROUPS or group.endswith(f" nice {NICENESS}\n")


def test_runs_that_an_ordinary_user_starts_at_once_all_have_a_low_priority() -> None:
    argv = [SYSTEM_PYTHON, "-I", "-S", "-c", Path(limit_launcher.__file__).read_text(), "", "--"]
    become = ["setpriv", f"--reuid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
    command = [*become, *argv, "cat", "/proc/self/autogroup"]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) for _ in range(3)
    ]
    outputs = [each.communicate()[0] for each in started]
    assert not HAS_AUTOGROUPS or all(each.endswith(f" nice {NICENESS}\n") for each in outputs), outputs


def test_a_command_without_a_session_of_its_own_leaves_the_priority_of_the_session() -> None:
    command = RunLimits(ResourceLimits(memory=1), None).command(PROFILE, ["nice"], None)
    read = "cat /proc/self/autogroup || true"
    script = f'{read}; "$@"; {read}'
    argv = ["sh", "-c", script, "sh", *command]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, start_new_session=True)
    before, after = done.stdout.split(f"{NICENESS}\n", 1)
    assert before == after


def test_the_kernel_limits_the_processes_of_an_ordinary_user() -> None:
    many = 'for i in $(seq 2000); do sleep 60 >/dev/null 2>&1 & done; echo "survived"'
    become = ["setpriv", f"--reuid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
    started = run(ResourceLimits(processes=20), [*become, "sh", "-c", many])
    try:
        output, errors = started.communicate()
    finally:
        os.killpg(started.pid, signal.SIGKILL)
    assert "survived" not in output
    assert "fork" in errors.lower()


def test_no_variable_runs_code_outside_of_the_sandbox_and_all_reach_the_program() -> None:
    odd = {
        "BASH_ENV": "/etc/evil",
        "SHELLOPTS": "xtrace",
        "PS4": "$(echo evil >&2)",
        "BASH_FUNC_echo%%": "() { evil; }",
        "PYTHONPATH": "/evil",
        "npm_config_//example/:_token": "secret",
        "LC_CTYPE": "C",
    }
    command = RunLimits(ResourceLimits(processes=100), None).command(PROFILE, ["env"], None)
    done = subprocess.run(command, env=ENV | odd, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert dict(line.split("=", 1) for line in done.stdout.splitlines()) == ENV | odd


def test_what_enforces_each_limit_is_named() -> None:
    limits = RunLimits(ResourceLimits(memory=1 << 30, processes=0, disk=5), None)
    assert [(each.name, each.value, each.enforced_by) for each in limits.describe()] == [
        ("memory", 1 << 30, "server"),
        ("processes", 0, ""),
        ("disk", 5, "server"),
    ]
