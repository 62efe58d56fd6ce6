"""Find the directories in which programs are installed, so that a run can read what it executes."""

import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping

import bullpen

# Directories below a home in which toolchains are installed; `.local` also has data of other programs.
TOOLCHAINS = (
    *(".local/bin", ".local/lib", ".local/lib64", ".local/include", ".local/opt", ".local/pipx"),
    *(f".local/share/{name}" for name in ("uv", "pipx", "mise", "fnm", "pnpm", "claude", "hatch", "man")),
    *(".nvm", ".pyenv", ".rbenv", ".cargo", ".rustup", ".bun", ".deno", "go", ".volta", ".asdf", ".sdkman"),
)
_MAX_SHEBANG_BYTES = 256


def installation_roots(env: Mapping[str, str], homes: Collection[str]) -> Iterator[str]:
    """Yield the installations of the programs on PATH, and that of Bullpen itself."""
    for directory in env.get("PATH", os.defpath).split(":"):
        if os.path.isabs(directory):
            yield installation_root(directory, homes)
    for prefix in (sys.prefix, sys.base_prefix, os.path.dirname(sys.executable)):
        yield installation_root(prefix, homes)
    yield os.path.dirname(bullpen.__file__)


def program_roots(program: str, env: Mapping[str, str], homes: Collection[str]) -> Iterator[str]:
    """Yield the installations that a program needs: its own, and that of the interpreter of its script."""
    found = shutil.which(program, path=env.get("PATH", os.defpath))
    if found is None:
        return
    found = os.path.abspath(found)
    real = os.path.realpath(found)
    for path in (found, *_links(found), real):
        yield installation_root(os.path.dirname(path), homes)
    interpreter = _interpreter(real)
    if interpreter is not None and interpreter != program:
        yield from program_roots(interpreter, env, homes)


def installation_root(directory: str, homes: Collection[str]) -> str:
    """Return the installation that a directory of programs belongs to, at least the directory itself.

    It is never a home or a directory that contains one.
    """
    directory = os.path.normpath(directory)
    before, separator, _ = f"{directory}/".partition("/node_modules/")
    if separator:
        root = f"{before}/node_modules"
    elif os.path.basename(directory) in ("bin", "sbin"):
        root = os.path.dirname(directory)
    else:
        return directory
    is_shared = os.path.basename(root) == ".local"
    return directory if is_shared or any(_contains(root, home) for home in homes) else root


def _links(path: str) -> Iterator[str]:
    """Yield the targets of a chain of symbolic links, without the last one."""
    for _ in range(40):
        if not os.path.islink(path):
            return
        path = os.path.join(os.path.dirname(path), os.readlink(path))
        yield os.path.normpath(path)


def _interpreter(path: str) -> str | None:
    """Return the interpreter that the first line of a script names; None for another program."""
    try:
        with open(path, "rb") as file:
            line = file.read(_MAX_SHEBANG_BYTES).partition(b"\n")[0]
    except OSError:
        return None
    words = os.fsdecode(line.removeprefix(b"#!")).split() if line.startswith(b"#!") else []
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else None


def _contains(directory: str, path: str) -> bool:
    """Return whether a directory is or contains a path."""
    return directory == "/" or f"{path}/".startswith(f"{directory}/")
