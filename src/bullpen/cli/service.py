"""`bullpen service`: install, start and stop the server as a systemd user service."""

import os
import shutil
import subprocess
from pathlib import Path

import click

from ..config import load
from ..domain.errors import BullpenError, Conflict, RemoteFault
from .output import print_json
from .systemd_unit import NAME, unit_file, unit_text
from .text import home_relative
from .verb import json_option
from .verb_group import VerbGroup

service = VerbGroup(help="Run the server as a systemd user service.")

_START = "bullpen service start"
_TIMEOUT_SECONDS = 30.0  # stopping the server takes a few seconds
_STOPPED, _NOT_INSTALLED = 3, 4  # exit codes of systemctl and init scripts
_NOT_INSTALLED_MESSAGE = "the service is not installed; install it with: bullpen service install"


class NoSystemd(BullpenError):
    """No systemd user manager runs, so a unit would have no effect."""

    code = "no_systemd"


@service.command()
@click.option("--print", "only_print", is_flag=True, help="Print the unit without writing it.")
def install(only_print: bool) -> None:
    """Write a systemd unit for the server, and print the command that starts it now and at every login.

    Settings from the environment are written into the unit, except the token.

    \b
    Examples:
      bullpen service install
      bullpen service install --print > bullpen.service
    """
    settings = load()
    text = unit_text(settings, os.environ)
    if only_print:
        print(text, end="")
        return
    _require_systemd()
    path = unit_file(os.environ)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    print(f"wrote {home_relative(str(path))}:\n\n{text}")
    if settings.sources["token"] == "environment":
        print("BULLPEN_TOKEN is not in it; the service uses the token in its data directory.")
    print(f"Start it now and at every login with:  {_START}")
    print("Keep it when you log out with:         loginctl enable-linger")


@service.command()
def start() -> None:
    """Start the service, now and at every login."""
    _require_unit(unit_file(os.environ))
    _require_systemd()
    _run_systemctl("daemon-reload")
    _run_systemctl("enable", "--now", NAME)
    print("started the service")


@service.command()
def stop() -> None:
    """Stop the service until it is started again, or until the next login. Terminals and agents go on."""
    _require_unit(unit_file(os.environ))
    _require_systemd()
    _run_systemctl("stop", NAME)
    print("stopped the service")


@service.command()
def uninstall() -> None:
    """Stop the service and remove its unit. Terminals and agents go on."""
    path = unit_file(os.environ)
    _require_unit(path)
    _require_systemd()
    _run_systemctl("disable", "--now", NAME)
    path.unlink()
    _run_systemctl("daemon-reload")
    print(f"stopped the service and removed {home_relative(str(path))}")


@service.command()
@json_option
def status(json: bool) -> int:
    """Show whether the service is installed and runs.

    Exits with 0 when it runs, 3 when it does not, 4 when it is not installed.
    """
    path = unit_file(os.environ)
    if not path.exists():
        return _report_not_installed(path, json)
    _require_systemd()
    enabled, active = _query("is-enabled"), _query("is-active")
    if json:
        print_json({"unit": str(path), "enabled": enabled, "active": active})
    else:
        print(f"{home_relative(str(path))} is {enabled} and {active}")
        if active != "active":
            print(f"start it with: {_START}\nor see why it does not run: journalctl --user -u {NAME} -e")
    return 0 if active == "active" else _STOPPED


def _report_not_installed(path: Path, json: bool) -> int:
    """Print that there is no unit, in JSON with the states of systemd, and return the exit code."""
    if json:
        print_json({"unit": str(path), "enabled": "not-found", "active": "inactive"})
    else:
        print(_NOT_INSTALLED_MESSAGE)
    return _NOT_INSTALLED


def _require_unit(path: Path) -> None:
    """Raise Conflict if the unit is not installed."""
    if not path.exists():
        raise Conflict(_NOT_INSTALLED_MESSAGE)


def _require_systemd() -> None:
    """Raise NoSystemd unless the systemd manager of this user answers; being installed is not enough."""
    if shutil.which("systemctl") is None or _systemctl("show", "--property=Version").returncode != 0:
        raise NoSystemd(
            "systemd does not run services for this user here; keep `bullpen serve` running in another way "
            "(tmux, a supervisor), or install the unit elsewhere: bullpen service install --print"
        )


def _run_systemctl(*arguments: str) -> None:
    """Run a systemctl command, and raise RemoteFault with its last line if it fails."""
    done = _systemctl(*arguments)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it gives no reason"]
        raise RemoteFault(f"systemctl --user {' '.join(arguments)} failed: {lines[-1]}")


def _query(verb: str) -> str:
    """Return what systemctl prints about the service."""
    return _systemctl(verb, NAME).stdout.strip() or "unknown"


def _systemctl(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run systemctl for the user's services and return the result."""
    return subprocess.run(
        ["systemctl", "--user", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_SECONDS,
    )
