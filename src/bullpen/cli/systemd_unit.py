"""Generate the systemd unit that runs the server."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from ..config import OPTIONS, Config

NAME = "bullpen.service"

# KillMode: any other mode would end the keeper with the server, and so every terminal and agent.
# OOMPolicy: if the kernel kills one process for its memory use, the other processes go on.
# Delegate: the server makes control groups for sandboxed runs, beside its own (since systemd 254).
_UNIT = """[Unit]
Description=Bullpen

[Service]
ExecStart={command} serve --no-open
{environment}Restart=on-failure
RestartSec=1
KillMode=process
OOMPolicy=continue
Delegate=memory pids cpu
DelegateSubgroup=server

[Install]
WantedBy=default.target
"""


def unit_file(env: Mapping[str, str]) -> Path:
    """Return the path of the unit in the configuration directory of the user."""
    base = env.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()
    return Path(base, "systemd", "user", NAME)


def unit_text(settings: Config, env: Mapping[str, str]) -> str:
    """Return the unit for this installation, with the settings that come from the environment."""
    settings_in_env = {
        option.env: env[option.env]
        for option in OPTIONS
        if settings.sources[option.name] == "environment" and not option.secret
    }
    variables = {"PATH": env.get("PATH", os.defpath), **settings_in_env}  # PATH: to find the same agents
    lines = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in variables.items())
    command = " ".join(_quoted(word.replace("$", "$$")) for word in _command())
    return _UNIT.format(command=command, environment=lines)


def _command() -> list[str]:
    """Return the command that starts bullpen, with its absolute path in this virtual environment."""
    program = shutil.which("bullpen", path=str(Path(sys.executable).parent))
    return [program] if program else [sys.executable, "-m", "bullpen"]


def _quoted(word: str) -> str:
    """Return a word with the quotes and escapes of systemd."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    return f'"{escaped}"' if escaped != word or not word or set(word) & set(" \t'") else word
