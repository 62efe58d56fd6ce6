"""The command of the scripted agent."""

import sys
from pathlib import Path

SCRIPTED_AGENT = Path(__file__).parents[2] / "agents" / "scripted.py"


def scripted_command(journal: Path, script: Path | None = None) -> list[str]:
    """Return the command; `-S` starts Python without the installed packages, which takes 3 ms less."""
    command = [sys.executable, "-S", str(SCRIPTED_AGENT), "--journal", str(journal)]
    return command if script is None else [*command, "--script", str(script)]
