"""`bullpen service`: a unit that keeps what must outlive the server, written where systemd looks."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from support.commands import Bullpen

# Stands in for systemd, which no test machine need run: it notes its orders and answers as told.
SYSTEMCTL = """#!/bin/sh
echo "$@" >> {journal}
case "$*" in
    "--user is-enabled"*) echo enabled ;;
    "--user is-active"*) cat {state}; exit 3 ;;
esac
exit $(cat {code})
"""


class Systemd:
    """What it was told, and how it answers."""

    def __init__(self, place: Path) -> None:
        self._journal, self._state, self._code = (place / name for name in ("journal", "state", "code"))
        place.mkdir()
        self.command = place / "systemctl"
        self.command.write_text(SYSTEMCTL.format(journal=self._journal, state=self._state, code=self._code))
        self.command.chmod(0o755)
        self.answer(code=0)

    def answer(self, *, code: int, state: str = "active") -> None:
        self._code.write_text(str(code))
        self._state.write_text(f"{state}\n")

    def orders(self) -> list[str]:
        return self._journal.read_text().splitlines() if self._journal.exists() else []


@pytest.fixture
def systemd(lonely_bullpen: Bullpen, tmp_path: Path) -> Systemd:
    systemd = Systemd(tmp_path / "systemd")
    lonely_bullpen.env["PATH"] = f"{systemd.command.parent}:{lonely_bullpen.env['PATH']}"
    return systemd


def unit_of(tmp_path: Path) -> Path:
    return tmp_path / ".config" / "systemd" / "user" / "bullpen.service"


def lines_of(unit: str, name: str) -> list[str]:
    return [line.partition("=")[2] for line in unit.splitlines() if line.startswith(f"{name}=")]


async def test_the_unit_lets_the_keeper_outlive_the_server(lonely_bullpen: Bullpen, tmp_path: Path) -> None:
    unit = (await lonely_bullpen("service", "install", "--print")).out
    assert lines_of(unit, "KillMode") == ["process"]
    assert lines_of(unit, "OOMPolicy") == ["continue"]
    assert lines_of(unit, "Restart") == ["on-failure"]
    (command,) = lines_of(unit, "ExecStart")
    assert shlex.split(command) == [str(Path(sys.executable).parent / "bullpen"), "serve", "--no-open"]
    assert not unit_of(tmp_path).exists()


async def test_the_unit_has_the_settings_of_this_shell_but_never_the_token(lonely_bullpen: Bullpen) -> None:
    lonely_bullpen.env |= {"BULLPEN_HOME": '/data/50% "mine"', "BULLPEN_TOKEN": "very-secret"}
    unit = (await lonely_bullpen("service", "install", "--print")).out
    path = f"PATH={lonely_bullpen.env['PATH']}"
    assert lines_of(unit, "Environment") == [path, r'"BULLPEN_HOME=/data/50%% \"mine\""']
    assert "very-secret" not in unit


async def test_installing_writes_the_unit_and_says_what_to_do_next(
    lonely_bullpen: Bullpen, systemd: Systemd, tmp_path: Path
) -> None:
    done = await lonely_bullpen("service", "install")
    assert done.out.startswith("wrote ~/.config/systemd/user/bullpen.service:\n\n[Unit]\n")
    assert "Start it now and at every login with:  bullpen service start\n" in done.out
    assert "loginctl enable-linger" in done.out
    assert unit_of(tmp_path).read_text() in done.out
    assert systemd.orders() == ["--user show --property=Version"]


async def test_the_status_is_what_systemd_says(lonely_bullpen: Bullpen, systemd: Systemd) -> None:
    await lonely_bullpen("service", "install")
    running = await lonely_bullpen("service", "status")
    assert (running.code, running.out) == (
        0,
        "~/.config/systemd/user/bullpen.service is enabled and active\n",
    )
    systemd.answer(code=0, state="failed")
    broken = await lonely_bullpen("service", "status")
    assert broken.code == 3
    assert "journalctl --user -u bullpen.service" in broken.out
    assert json.loads((await lonely_bullpen("service", "status", "--json")).out)["active"] == "failed"


async def test_the_status_tells_a_service_that_is_absent_from_one_that_is_stopped(
    lonely_bullpen: Bullpen, systemd: Systemd, tmp_path: Path
) -> None:
    absent = "the service is not installed; install it with: bullpen service install\n"
    assert await lonely_bullpen("service", "status") == (4, absent, "")
    told = await lonely_bullpen("service", "status", "--json")
    unit = str(unit_of(tmp_path))
    assert (told.code, json.loads(told.out)) == (
        4,
        {"unit": unit, "enabled": "not-found", "active": "inactive"},
    )
    await lonely_bullpen("service", "install")
    systemd.answer(code=0, state="inactive")
    assert (await lonely_bullpen("service", "status")).code == 3


async def test_service_start_and_stop_do_what_systemctl_would_be_needed_for(
    lonely_bullpen: Bullpen, systemd: Systemd
) -> None:
    absent = "bullpen: the service is not installed; install it with: bullpen service install\n"
    assert await lonely_bullpen("service", "start") == (1, "", absent)
    await lonely_bullpen("service", "install")
    assert await lonely_bullpen("service", "start") == (0, "started the service\n", "")
    assert systemd.orders()[-2:] == ["--user daemon-reload", "--user enable --now bullpen.service"]
    assert await lonely_bullpen("service", "stop") == (0, "stopped the service\n", "")
    assert systemd.orders()[-1] == "--user stop bullpen.service"


async def test_uninstalling_stops_the_service_and_removes_the_unit(
    lonely_bullpen: Bullpen, systemd: Systemd, tmp_path: Path
) -> None:
    await lonely_bullpen("service", "install")
    done = await lonely_bullpen("service", "uninstall")
    assert done.out == "stopped the service and removed ~/.config/systemd/user/bullpen.service\n"
    assert systemd.orders()[-2:] == ["--user disable --now bullpen.service", "--user daemon-reload"]
    assert not unit_of(tmp_path).exists()
    again = await lonely_bullpen("service", "uninstall")
    assert again.err == ("bullpen: the service is not installed; install it with: bullpen service install\n")


async def test_without_systemd_it_says_what_else_one_can_do(
    lonely_bullpen: Bullpen, systemd: Systemd, tmp_path: Path
) -> None:
    systemd.answer(code=1)
    done = await lonely_bullpen("service", "install")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("bullpen: systemd does not run services for this user here; ")
    assert done.err.count("\n") == 1
    assert not unit_of(tmp_path).exists()
