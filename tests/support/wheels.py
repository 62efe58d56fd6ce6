"""Build wheels and sdists of this tree, and install them into virtual environments."""

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
    """Build a `wheel` or an `sdist` with the installed build tools, without a network; return its path."""
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(out), str(tree)]
    run(command, env=os.environ | {"TERM": "dumb"})
    (path,) = out.glob("bullpen-*.whl" if kind == "wheel" else "bullpen-*.tar.gz")
    return path


def build_newer(version: str, directory: Path) -> Path:
    """Build a wheel of the same code with another version."""
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


class VirtualEnvironment:
    """A virtual environment that is empty until Bullpen is installed."""

    def __init__(self, path: Path) -> None:
        self.bin = path / "bin"
        self.python = self.bin / "python"
        run([sys.executable, "-m", "venv", "--without-pip", str(path)])
        (self.packages,) = path.glob("lib/python*/site-packages")

    def install(self, wheel: Path) -> None:
        """Install a wheel or upgrade to it. Its requirements become links to packages of the test process."""
        (metadata,) = importlib.metadata.distributions(name="bullpen", path=[str(wheel)])
        for distribution in installed_requirements(metadata.requires or ()):
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


def installed_requirements(lines: Iterable[str]) -> list[importlib.metadata.Distribution]:
    """Return the installed distributions that these requirements need, with their own requirements."""
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
