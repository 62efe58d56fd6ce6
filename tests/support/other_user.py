"""Run Python programs as a user that is not root and has its home in a directory of the test."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import bullpen

SYSTEM_PYTHON = "/usr/bin/python3"
SOURCES = Path(bullpen.__file__).parents[1]
TESTS = Path(__file__).parents[1]
ORDINARY_USER = 61234  # an id that no user has
SECONDS = 200


def run_python(
    arguments: list[str], user: str, home: Path, prefix: tuple[str, ...] = ()
) -> "subprocess.CompletedProcess[str]":
    """Run Python with Bullpen as `root` or as an `ordinary` user, which is that of the tests if not root.

    `prefix` is a command that runs the program.
    """
    becomes_other = user == "ordinary" and os.geteuid() == 0
    command = [str(_python_for_all(home)) if becomes_other else sys.executable, *arguments]
    if becomes_other:
        ids = [f"--{kind}={ORDINARY_USER}" for kind in ("reuid", "regid")]
        command = ["setpriv", *ids, "--clear-groups", "--inh-caps=-all", *command]
        os.chown(home, ORDINARY_USER, ORDINARY_USER)
        for parent in home.parents[:3]:  # of pytest, which only root can enter
            os.chmod(parent, 0o755)
    return subprocess.run(
        [*prefix, *command],
        env={**os.environ, "HOME": str(home), "TMPDIR": str(home)},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def _python_for_all(directory: Path) -> Path:
    """Return a Python that every user may run, with the packages of this one, which may be in root's home."""
    environment = directory / "environment"
    subprocess.run([SYSTEM_PYTHON, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    paths = [str(SOURCES), str(TESTS), sysconfig.get_path("purelib"), ""]
    (packages / "all.pth").write_text("\n".join(paths))
    return environment / "bin" / "python"
