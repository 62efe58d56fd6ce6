"""The TypeScript types of the page match the types of the server."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_generated_types_of_the_page_are_current() -> None:
    script = ROOT / "scripts/ui_types.py"
    run = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
