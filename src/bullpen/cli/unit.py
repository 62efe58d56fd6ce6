"""The systemd unit of the server: its text and its place."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from ..config import OPTIONS, Config

NAME = "bullpen.service"

# KillMode: any other one ends the keeper, and so every terminal and agent, together with the server.
# OOMPolicy: when the kernel kills one greedy child, the others go on.
_UNIT = """[Unit]
Description=Bullpen

[Service]
ExecStart={command} serve --no-open
{environment}Restart=on-failure
RestartSec=1
KillMode=process
OOMPolicy=continue

[Install]
WantedBy=default.target
"""


def unit_file(env: Mapping[str, str]) -> Path:
    base = env.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()
    return Path(base, "systemd", "user", NAME)


def unit_text(settings: Config, env: Mapping[str, str]) -> str:
    """The unit for this very installation, with the settings a login shell would not bring to it."""
    given = {
        option.env: env[option.env]
        for option in OPTIONS
        if settings.sources[option.name] == "environment" and not option.secret
    }
    variables = {"PATH": env.get("PATH", os.defpath), **given}  # agents are found as they are now
    lines = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in variables.items())
    command = " ".join(_quoted(word.replace("$", "$$")) for word in _command())
    return _UNIT.format(command=command, environment=lines)


def _command() -> list[str]:
    """Ours by its whole path, links as they are: a virtual environment is one."""
    beside = shutil.which("bullpen", path=str(Path(sys.executable).parent))
    return [beside] if beside else [sys.executable, "-m", "bullpen"]


def _quoted(word: str) -> str:
    """A word as systemd reads it."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    return f'"{escaped}"' if escaped != word or not word or set(word) & set(" \t'") else word
