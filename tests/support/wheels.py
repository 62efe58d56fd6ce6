"""Wheels and sdists of this tree, and environments a person would install them into."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE", "src")


def build(kind: str, out: Path, tree: Path = ROOT) -> Path:
    """`kind` is wheel or sdist; made with what is installed, without a network."""
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(out), str(tree)]
    run(command, env=os.environ | {"TERM": "dumb"})
    (path,) = out.glob("bullpen-*.whl" if kind == "wheel" else "bullpen-*.tar.gz")
    return path


def build_newer(version: str, directory: Path) -> Path:
    """A wheel of the same code under a later version."""
    tree, out = directory / "tree", directory / "out"
    tree.mkdir(parents=True)
    for name in BUILT_FROM:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tree / name)
    package = tree / "src" / "bullpen" / "__init__.py"
    lines = package.read_text().splitlines()
    kept = [line for line in lines if not line.startswith("__version__")]
    package.write_text("\n".join([*kept, f'__version__ = "{version}"', ""]))
    return build("wheel", out, tree)


class Environment:
    """A Python environment with the dependencies in it already, and Bullpen when it is installed."""

    def __init__(self, path: Path) -> None:
        self.bin = path / "bin"
        self.python = self.bin / "python"
        run([sys.executable, "-m", "venv", "--without-pip", str(path)])
        (packages,) = path.glob("lib/python*/site-packages")
        # A path file leads to the packages, not to what path files there lead to: our own tree is not found.
        (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")

    def install(self, wheel: Path) -> None:
        """Over what is there, as an upgrade does."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--disable-pip-version-check"]
        run([*pip, "install", "--quiet", "--no-deps", "--no-index", "--upgrade", str(wheel)])


def run(command: list[str], env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
