"""Wheels and sdists of this tree, and environments a person would install them into."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement

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
    """A Python environment with nothing in it, until Bullpen is installed."""

    def __init__(self, path: Path) -> None:
        self.bin = path / "bin"
        self.python = self.bin / "python"
        run([sys.executable, "-m", "venv", "--without-pip", str(path)])
        (self.packages,) = path.glob("lib/python*/site-packages")

    def install(self, wheel: Path) -> None:
        """Over what is there, as an upgrade does; what the wheel asks for is linked, not fetched."""
        (metadata,) = importlib.metadata.distributions(name="bullpen", path=[str(wheel)])
        for distribution in needed(metadata.requires or ()):
            self._link(distribution)
        pip = [sys.executable, "-m", "pip", "--isolated", "--python", str(self.python)]
        run(
            [*pip, "--disable-pip-version-check", "install", "--quiet", "--no-index", "--upgrade", str(wheel)]
        )

    def _link(self, distribution: importlib.metadata.Distribution) -> None:
        for file in distribution.files or ():
            link = self.packages / file
            if ".." not in file.parts and not link.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(str(distribution.locate_file(file)))


def needed(lines: Iterable[str]) -> list[importlib.metadata.Distribution]:
    """Of what is installed for us: what these requirements ask for, and what that asks for in turn."""
    found = []
    waiting = [(line, "") for line in lines]
    seen = set(waiting)
    while waiting:
        line, extra = waiting.pop()
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
            found.append(importlib.metadata.distribution(wanted.name))
            extras = ("", *wanted.extras)
            more = {(each, extra) for each in found[-1].requires or () for extra in extras} - seen
            seen |= more
            waiting += more
    return found


def run(command: list[str], env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
