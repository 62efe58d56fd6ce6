"""Give git a common directory with the objects and refs of a repository, but with a safe configuration.

Git reads `$GIT_COMMON_DIR/config` and ignores the configuration in `$GIT_DIR` (see gitrepository-layout(5)).
An overlay is such a directory: symbolic links to what a repository shares between its worktrees, no hooks,
and a `config` with the settings that configuration.py selects. The repository's configuration is read once
and parsed by a git that has no repository; git works only with the copy, so there is no moment at which a
change of the original can take effect.
"""

import atexit
import hashlib
import os
import shutil
import stat
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp

from msgspec import Struct

from ..domain.errors import RemoteFault
from ..domain.failures import explain
from ..home import write_private
from .command import GitAccess, start_git
from .configuration import (
    Setting,
    has_worktree_config,
    parse_settings,
    render,
    select_of_new_worktree,
    select_of_repository,
    select_of_user,
)
from .git_directories import GitDirectories

MAX_CONFIG = 4 << 20  # bytes of one configuration file

_CONFIG = "config"
_WORKTREE_CONFIG = "config.worktree"
_GIT_DIR = "git-dir"  # a link to the git directory; it dangles when the worktree is gone
_PATTERNS = ("ignore", "attributes")  # in ~/.config/git
_SHARED = ("HEAD", "info", "logs", "objects", "packed-refs", "refs", "reftable", "shallow", "worktrees")


class _ConfigFile(Struct, frozen=True):
    """The content of a configuration file, and its settings."""

    content: bytes
    settings: list[Setting]


class _ConfigSources(Struct, frozen=True):
    """The files from which the configuration of one overlay is made."""

    of_user: list[_ConfigFile]
    of_repository: list[_ConfigFile]

    def render(self) -> bytes:
        """Return the configuration file of the overlay."""
        of_user = [each for file in self.of_user for each in select_of_user(file.settings)]
        of_repository = [each for file in self.of_repository for each in select_of_repository(file.settings)]
        return render(of_user + of_repository)


class Overlays:
    """The overlays of this process, one for each worktree; in a temporary directory without `keep_in`."""

    def __init__(self) -> None:
        self._files: dict[Path, _ConfigFile] = {}
        self._written: dict[Path, _ConfigSources] = {}
        self._directory: Path | None = None

    def keep_in(self, directory: Path) -> None:
        """Keep the overlays over restarts, and remove those of worktrees that are gone."""
        self._directory = directory
        for overlay in directory.glob("*"):
            if not (overlay / _GIT_DIR).exists():
                shutil.rmtree(overlay, ignore_errors=True)

    async def prepare(self, git_dirs: GitDirectories) -> Path:
        """Return the overlay directory of a worktree; write it first if the git configuration has changed.

        Raise an error for the user if it cannot be written.
        """
        sources = await self._sources(git_dirs)
        overlay = self._path(git_dirs)
        if self._written.get(overlay) != sources or not (overlay / _CONFIG).exists():
            try:
                _write(overlay, git_dirs, sources.render())
            except OSError as error:
                fault = RemoteFault(f"{overlay} cannot be written: {error.strerror}")
                raise explain(error) or fault from None
            self._written[overlay] = sources
        return overlay

    async def render_worktree_config(self, repository: GitDirectories) -> bytes | None:
        """Return the `config.worktree` that a new worktree starts with, or None if it has none."""
        shared = await self._read(repository.common_dir / _CONFIG)
        if not has_worktree_config(shared.settings):
            return None
        own = await self._read(repository.git_dir / _WORKTREE_CONFIG)
        return render(select_of_new_worktree(own.settings))

    def user_files(self) -> list[Path]:
        """Return the files of the user with patterns that git reads."""
        settings = [
            each for file in _user_files() if file in self._files for each in self._files[file].settings
        ]
        named = [
            value for key, value in settings if key in ("core.excludesfile", "core.attributesfile") and value
        ]
        return [
            *map(Path, map(os.path.expanduser, named)),
            *(_home() / ".config/git" / name for name in _PATTERNS),
        ]

    async def _sources(self, git_dirs: GitDirectories) -> _ConfigSources:
        """Read the configuration files that apply to a worktree."""
        of_user = [await self._read(file, includes=True) for file in _user_files()]
        of_repository = [await self._read(git_dirs.common_dir / _CONFIG)]
        if has_worktree_config(of_repository[0].settings):
            of_repository.append(await self._read(git_dirs.git_dir / _WORKTREE_CONFIG))
        return _ConfigSources(of_user, of_repository)

    async def _read(self, file: Path, *, includes: bool = False) -> _ConfigFile:
        """Read a file, and parse it if it has changed. What it includes is read when it is parsed."""
        content = _read_file(file)
        known = self._files.get(file)
        if known is None or known.content != content:
            settings = await _parse(file, content, includes=includes) if content else []
            self._files[file] = known = _ConfigFile(content, settings)
        return known

    def _path(self, git_dirs: GitDirectories) -> Path:
        """Return where the overlay of a worktree is."""
        name = hashlib.sha256(os.fsencode(git_dirs.git_dir) + b"\0" + os.fsencode(git_dirs.common_dir))
        return (self._directory or self._temporary) / name.hexdigest()[:32]

    @cached_property
    def _temporary(self) -> Path:
        """A temporary directory, removed at the end of the process."""
        directory = mkdtemp(prefix="bullpen-git-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        return Path(directory)


OVERLAYS = Overlays()


def _home() -> Path:
    """Return the home directory that git uses."""
    return Path(os.environ.get("HOME", "/"))


def _user_files() -> tuple[Path, Path]:
    """Return the paths of the user's configuration of git."""
    return _home() / ".config/git/config", _home() / ".gitconfig"


async def _parse(file: Path, content: bytes, *, includes: bool) -> list[Setting]:
    """Run git to parse a configuration file; raise RemoteFault if it fails.

    With includes, git reads the file itself, which belongs to the user, and may include any other. Without,
    it reads the given content, and no file.
    """
    source = ("--file", str(file), "--includes") if includes else ("--file", "-", "--no-includes")
    words, environment = (*source, "--null", "--list"), {"GIT_DIR": os.devnull}
    access, stdin = (None, b"") if includes else (GitAccess(), content)
    ended = await start_git("config", words, environment, access, stdin=stdin)
    if ended.code or ended.cut:
        reason = (ended.errors.splitlines() or ["it is too long"])[0].removeprefix("fatal: ")
        raise RemoteFault(f"the git configuration {file} cannot be read: {reason}")
    return parse_settings(ended.output)


def _read_file(file: Path) -> bytes:
    """Return the content of a configuration file, empty if there is none.

    Raise RemoteFault for a file that is too large or not regular; do not wait for the writer of a pipe.
    """
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
            status = os.fstat(opened.fileno())
            if stat.S_ISCHR(status.st_mode):  # users link ~/.gitconfig to /dev/null
                return b""
            if not stat.S_ISREG(status.st_mode):
                raise RemoteFault(f"the git configuration {file} is not a file")
            if status.st_size > MAX_CONFIG:
                raise RemoteFault(f"the git configuration {file} is larger than {MAX_CONFIG >> 20} MiB")
            return opened.read()
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        fault = RemoteFault(f"the git configuration {file} cannot be read: {error.strerror}")
        raise explain(error) or fault from None


def _write(overlay: Path, git_dirs: GitDirectories, config: bytes) -> None:
    """Make an overlay or replace its configuration. A git that a killed server left may be using it."""
    overlay.mkdir(mode=0o700, parents=True, exist_ok=True)
    links = {name: git_dirs.common_dir / name for name in _SHARED} | {_GIT_DIR: git_dirs.git_dir}
    for name, target in links.items():
        with suppress(FileExistsError):
            (overlay / name).symlink_to(target)
    write_private(overlay / _CONFIG, config)
