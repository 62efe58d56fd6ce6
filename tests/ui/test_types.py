"""The page's types are the server's own words."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_types_of_the_page_are_what_the_server_says_of_itself() -> None:
    script = ROOT / "scripts/ui_types.py"
    run = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
