"""`bullpen service` installs and controls a systemd unit under which keepers outlive the server."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from support.commands import Bullpen

# Replaces systemctl, so that tests need no systemd: it records its arguments and prints a given state.
SYSTEMCTL = """#!/bin/sh
echo "$@" >> {journal}
case "$*" in
    "--user is-enabled"*) echo enabled ;;
    "--user is-active"*) cat {state}; exit 3 ;;
esac
exit $(cat {code})
"""


class FakeSystemctl:
    """A program named systemctl that records its calls, and the state and exit code that it returns."""

    def __init__(self, directory: Path) -> None:
        self._journal, self._state, self._code = (directory / name for name in ("journal", "state", "code"))
        directory.mkdir()
        self.command = directory / "systemctl"
        self.command.write_text(SYSTEMCTL.format(journal=self._journal, state=self._state, code=self._code))
        self.command.chmod(0o755)
        self.set_result(code=0)

    def set_result(self, *, code: int, state: str = "active") -> None:
        self._code.write_text(str(code))
        self._state.write_text(f"{state}\n")

    def calls(self) -> list[str]:
        return self._journal.read_text().splitlines() if self._journal.exists() else []


@pytest.fixture
def systemd(bullpen_without_server: Bullpen, tmp_path: Path) -> FakeSystemctl:
    systemd = FakeSystemctl(tmp_path / "systemd")
    bullpen_without_server.env["PATH"] = f"{systemd.command.parent}:{bullpen_without_server.env['PATH']}"
    return systemd


def unit_of(tmp_path: Path) -> Path:
    return tmp_path / ".config" / "systemd" / "user" / "bullpen.service"


def lines_of(unit: str, name: str) -> list[str]:
    return [line.partition("=")[2] for line in unit.splitlines() if line.startswith(f"{name}=")]


async def test_the_unit_lets_the_keeper_outlive_the_server(
    bullpen_without_server: Bullpen, tmp_path: Path
) -> None:
    unit = (await bullpen_without_server("service", "install", "--print")).out
    assert lines_of(unit, "KillMode") == ["process"]
    assert lines_of(unit, "OOMPolicy") == ["continue"]
    assert lines_of(unit, "DelegateSubgroup") == ["server"], "control groups are made beside this one"
    assert lines_of(unit, "Restart") == ["on-failure"]
    (command,) = lines_of(unit, "ExecStart")
    assert shlex.split(command) == [str(Path(sys.executable).parent / "bullpen"), "serve", "--no-open"]
    assert not unit_of(tmp_path).exists()


async def test_the_unit_has_the_settings_of_this_shell_but_never_the_token(
    bullpen_without_server: Bullpen,
) -> None:
    bullpen_without_server.env |= {"BULLPEN_HOME": '/data/50% "mine"', "BULLPEN_TOKEN": "very-secret"}
    unit = (await bullpen_without_server("service", "install", "--print")).out
    path = f"PATH={bullpen_without_server.env['PATH']}"
    assert lines_of(unit, "Environment") == [path, r'"BULLPEN_HOME=/data/50%% \"mine\""']
    assert "very-secret" not in unit


async def test_installing_writes_the_unit_and_says_what_to_do_next(
    bullpen_without_server: Bullpen, systemd: FakeSystemctl, tmp_path: Path
) -> None:
    done = await bullpen_without_server("service", "install")
    assert done.out.startswith("wrote ~/.config/systemd/user/bullpen.service:\n\n[Unit]\n")
    assert "Start it now and at every login with:  bullpen service start\n" in done.out
    assert "loginctl enable-linger" in done.out
    assert unit_of(tmp_path).read_text() in done.out
    assert systemd.calls() == ["--user show --property=Version"]


async def test_the_status_is_the_one_of_systemd(
    bullpen_without_server: Bullpen, systemd: FakeSystemctl
) -> None:
    await bullpen_without_server("service", "install")
    running = await bullpen_without_server("service", "status")
    assert (running.code, running.out) == (
        0,
        "~/.config/systemd/user/bullpen.service is enabled and active\n",
    )
    systemd.set_result(code=0, state="failed")
    broken = await bullpen_without_server("service", "status")
    assert broken.code == 3
    assert "journalctl --user -u bullpen.service" in broken.out
    assert json.loads((await bullpen_without_server("service", "status", "--json")).out)["active"] == "failed"


async def test_the_status_of_a_missing_service_differs_from_that_of_a_stopped_one(
    bullpen_without_server: Bullpen, systemd: FakeSystemctl, tmp_path: Path
) -> None:
    absent = "the service is not installed; install it with: bullpen service install\n"
    assert await bullpen_without_server("service", "status") == (4, absent, "")
    done = await bullpen_without_server("service", "status", "--json")
    unit = str(unit_of(tmp_path))
    assert (done.code, json.loads(done.out)) == (
        4,
        {"unit": unit, "enabled": "not-found", "active": "inactive"},
    )
    await bullpen_without_server("service", "install")
    systemd.set_result(code=0, state="inactive")
    assert (await bullpen_without_server("service", "status")).code == 3


async def test_service_start_and_stop_call_systemctl(
    bullpen_without_server: Bullpen, systemd: FakeSystemctl
) -> None:
    absent = "bullpen: the service is not installed; install it with: bullpen service install\n"
    assert await bullpen_without_server("service", "start") == (1, "", absent)
    await bullpen_without_server("service", "install")
    assert await bullpen_without_server("service", "start") == (0, "started the service\n", "")
    assert systemd.calls()[-2:] == ["--user daemon-reload", "--user enable --now bullpen.service"]
    assert await bullpen_without_server("service", "stop") == (0, "stopped the service\n", "")
    assert systemd.calls()[-1] == "--user stop bullpen.service"


async def test_uninstalling_stops_the_service_and_removes_the_unit(
    bullpen_without_server: Bullpen, systemd: FakeSystemctl, tmp_path: Path
) -> None:
    await bullpen_without_server("service", "install")
    done = await bullpen_without_server("service", "uninstall")
    assert done.out == "stopped the service and removed ~/.config/systemd/user/bullpen.service\n"
    assert systemd.calls()[-2:] == ["--user disable --now bullpen.service", "--user daemon-reload"]
    assert not unit_of(tmp_path).exists()
    again = await bullpen_without_server("service", "uninstall")
    assert again.err == ("bullpen: the service is not installed; install it with: bullpen service install\n")


async def test_without_systemd_the_error_says_what_to_do_instead(
    bullpen_without_server: Bullpen, systemd: FakeSystemctl, tmp_path: Path
) -> None:
    systemd.set_result(code=1)
    done = await bullpen_without_server("service", "install")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("bullpen: systemd does not run services for this user here; ")
    assert done.err.count("\n") == 1
    assert not unit_of(tmp_path).exists()
