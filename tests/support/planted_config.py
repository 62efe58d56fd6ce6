"""Plant git settings that run programs, by each route by which git reads settings."""

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from bullpen.git.configuration import Setting, render
from support.config_keys import HOOKS, PROGRAM, SWITCHES, planted_settings
from support.git_exploits import HostileRepository
from support.repositories import ENVIRONMENT, Repo

_FILTERS = ("filter.<driver>.clean", "filter.<driver>.smudge")  # these programs must return the content
_HOOK_NAMES = ("post-checkout", "post-index-change", "reference-transaction", "pre-commit", "post-rewrite")
_ATTRIBUTES = """\
readme.txt filter=plain diff=textconv
src/code.txt filter=plain diff=command merge=canary
src/more.txt filter=process diff=textconv merge=canary
"""
# Variables that name a program.
_VARIABLES = (
    *("BROWSER", "EDITOR", "PAGER", "SSH_ASKPASS", "VISUAL"),
    *("GIT_ASKPASS", "GIT_EDITOR", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_PROXY_COMMAND"),
    *("GIT_SEQUENCE_EDITOR", "GIT_SSH", "GIT_SSH_COMMAND"),
)


class PlantedRepository(HostileRepository):
    """A hostile repository with a separate program for each key. A route adds variables to `env`."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self._runs = top / "ran"
        self._runs.mkdir()
        self._programs = top / "programs"
        self._programs.mkdir()
        self.env: dict[str, str] = {}
        self.home = top / "user"
        (self.home / ".config" / "git").mkdir(parents=True)
        self._sign_commits()
        self.settings = [
            (self._fill(key, name), self._fill(key, value)) for key, name, value in planted_settings()
        ]
        self.settings += [("remote.local.url", str(self.repo.path)), ("gpg.format", "openpgp")]

    def programs_that_ran(self) -> set[str]:
        """Return the keys whose programs ran."""
        return {file.read_text().strip() for file in self._runs.iterdir()}

    def clear_traces(self) -> None:
        for file in self._runs.iterdir():
            file.unlink()

    def make_program(self, key: str) -> Path:
        """Create a script that writes the key to a file when it runs."""
        number = f"{len(list(self._programs.iterdir()))}"
        script = self._programs / number
        record = f"echo '{key}' > {self._runs / number}"
        script.write_text(f"#!/bin/sh\n{record}\n{'exec cat' if key in _FILTERS else 'exit 0'}\n")
        script.chmod(0o755)
        return script

    def configure_locally(self, settings: list[Setting]) -> None:
        with (self.repo.git_dir / "config").open("ab") as config:
            config.write(render(settings))

    def _fill(self, key: str, text: str) -> str:
        """Replace the placeholder of a program or a hooks directory in a setting."""
        if HOOKS in text:
            return text.replace(HOOKS, str(self._hooks(key)))
        return text.replace(PROGRAM, str(self.make_program(key))) if PROGRAM in text else text

    def _hooks(self, key: str) -> Path:
        """Create a directory in which every hook is the program of this key."""
        script = self.make_program(key)
        directory = script.with_name(f"{script.name}.hooks")
        directory.mkdir()
        for name in _HOOK_NAMES:
            (directory / name).symlink_to(script)
        (directory / "hooks").symlink_to(".")
        return directory

    def _sign_commits(self) -> None:
        """Add a signature to the checked out commits, so that git runs a program to verify it."""
        for git_directories in self.all_git_directories:
            head, _, message = self.repo.git(
                "cat-file", "commit", "HEAD", cwd=git_directories.work_tree
            ).partition("\n\n")
            begin, end = "-----BEGIN PGP SIGNATURE-----", "-----END PGP SIGNATURE-----"
            raw = self.top / "signed"
            raw.write_text(f"{head}\ngpgsig {begin}\n \n x\n {end}\n\n{message}")
            signed = self.repo.git("hash-object", "-t", "commit", "-w", str(raw)).strip()
            self.repo.git("update-ref", "HEAD", signed, cwd=git_directories.work_tree)


Route = Callable[[PlantedRepository], None]


def local(hostile: PlantedRepository) -> None:
    hostile.set_attributes(_ATTRIBUTES)
    hostile.configure_locally(list(hostile.settings))


def worktree_config(hostile: PlantedRepository) -> None:
    hostile.set_attributes(_ATTRIBUTES)
    hostile.configure_locally([("extensions.worktreeConfig", "true")])
    for git_directories in hostile.all_git_directories:
        (git_directories.git_dir / "config.worktree").write_bytes(render(hostile.settings))


def _include(hostile: PlantedRepository, key: str, settings: list[Setting]) -> None:
    hostile.set_attributes(_ATTRIBUTES)
    included = hostile.top / "included"
    included.write_bytes(render(settings))
    hostile.configure_locally([(key, str(included))])


def include(hostile: PlantedRepository) -> None:
    _include(hostile, "include.path", list(hostile.settings))


def include_if_gitdir(hostile: PlantedRepository) -> None:
    _include(hostile, "includeIf.gitdir:**.path", list(hostile.settings))


def include_if_gitdir_of_a_worktree(hostile: PlantedRepository) -> None:
    _include(hostile, "includeIf.gitdir:**/worktrees/**.path", list(hostile.settings))


def include_if_gitdir_ignoring_case(hostile: PlantedRepository) -> None:
    _include(hostile, "includeIf.gitdir/i:**/REPO/**.path", list(hostile.settings))


def include_if_onbranch(hostile: PlantedRepository) -> None:
    _include(hostile, "includeIf.onbranch:**.path", list(hostile.settings))


def include_if_onbranch_of_a_new_worktree(hostile: PlantedRepository) -> None:
    """Include the settings on the branches that CALLS (`plain`) and Bullpen (`added`) create."""
    for branch in ("plain", "added"):
        _include(hostile, f"includeIf.onbranch:{branch}.path", list(hostile.settings))


def include_if_hasconfig(hostile: PlantedRepository) -> None:
    """Include all settings but URLs of remotes: git refuses those on this condition."""
    hostile.configure_locally([("remote.known.url", "https://example.invalid/x")])
    settings: list[Setting] = [(key, value) for key, value in hostile.settings if not key.endswith(".url")]
    _include(hostile, "includeIf.hasconfig:remote.*.url:https://example.invalid/**.path", settings)


def submodule(hostile: PlantedRepository) -> None:
    """Plant the settings in a submodule, and make the repository's configuration read submodules."""
    inner = Repo(hostile.top / "inner")
    hostile.repo.git("submodule", "add", "-q", str(inner.path), "sub")
    hostile.head = hostile.repo.commit("submodule")
    directory = hostile.repo.git_dir / "modules" / "sub"
    with (directory / "config").open("ab") as config:
        config.write(render(hostile.settings))
    (directory / "info" / "attributes").write_text("* filter=plain diff=textconv\n")
    hostile.configure_locally([each for key in SWITCHES for each in SWITCHES[key].items()])
    (hostile.repo.path / "sub" / "readme.txt").write_text("changed\n")
    hostile.change_files()


def user(hostile: PlantedRepository) -> None:
    hostile.set_attributes(_ATTRIBUTES)
    (hostile.home / ".gitconfig").write_bytes(render(hostile.settings))
    hostile.env["HOME"] = str(hostile.home)


def user_xdg(hostile: PlantedRepository) -> None:
    hostile.set_attributes(_ATTRIBUTES)
    (hostile.home / ".config" / "git" / "config").write_bytes(render(hostile.settings))
    hostile.env["HOME"] = str(hostile.home)


def environment_settings(hostile: PlantedRepository) -> None:
    hostile.set_attributes(_ATTRIBUTES)
    hostile.env["GIT_CONFIG_COUNT"] = str(len(hostile.settings))
    for number, (key, value) in enumerate(hostile.settings):
        hostile.env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}


def environment_files(hostile: PlantedRepository) -> None:
    hostile.set_attributes(_ATTRIBUTES)
    files = [hostile.top / "system", hostile.top / "global"]
    for file in files:
        file.write_bytes(render(hostile.settings))
    hostile.env |= {"GIT_CONFIG_SYSTEM": str(files[0]), "GIT_CONFIG_GLOBAL": str(files[1])}
    hostile.env["GIT_CONFIG_NOSYSTEM"] = "0"


def environment_programs(hostile: PlantedRepository) -> None:
    hostile.env |= {name: str(hostile.make_program(f"${name}")) for name in _VARIABLES}


def environment_directories(hostile: PlantedRepository) -> None:
    """Name another git directory, which has the settings, in the environment."""
    evil = Repo(hostile.top / "evil").git_dir
    with (evil / "config").open("ab") as config:
        config.write(render([*hostile.settings, ("core.worktree", str(hostile.repo.path))]))
    (evil / "info" / "attributes").write_text("* filter=plain diff=textconv\n")
    hostile.env |= {"GIT_DIR": str(evil), "GIT_COMMON_DIR": str(evil)}


def tracked_attributes(hostile: PlantedRepository) -> None:
    for git_directories in hostile.all_git_directories:
        (git_directories.work_tree / ".gitattributes").write_text(_ATTRIBUTES)
        hostile.repo.git("add", ".gitattributes", cwd=git_directories.work_tree)
        hostile.repo.git("commit", "-q", "-m", "attributes", cwd=git_directories.work_tree)
    hostile.head = hostile.repo.git("rev-parse", "HEAD").strip()
    hostile.configure_locally(list(hostile.settings))


def attributes_of_user(hostile: PlantedRepository) -> None:
    (hostile.home / ".config" / "git" / "attributes").write_text(_ATTRIBUTES)
    hostile.env["HOME"] = str(hostile.home)
    hostile.configure_locally(list(hostile.settings))


ROUTES: tuple[Route, ...] = (
    local,
    worktree_config,
    include,
    include_if_gitdir,
    include_if_gitdir_of_a_worktree,
    include_if_gitdir_ignoring_case,
    include_if_onbranch,
    include_if_onbranch_of_a_new_worktree,
    include_if_hasconfig,
    submodule,
    user,
    user_xdg,
    environment_settings,
    environment_files,
    environment_programs,
    environment_directories,
    tracked_attributes,
    attributes_of_user,
)

# Calls of plain git, as users and agents type them. `@` runs a call in the linked worktree.
CALLS: tuple[str, ...] = (
    "status",
    "@ status",
    "diff",
    "@ diff HEAD",
    "log -p -1",
    "ls-files --others",
    "worktree add -q -b plain {top}/plain",
    "fetch -q origin",
    "fetch -q local",
    "fetch -q foreign",
    "push -q origin HEAD",
    "push -q local HEAD:refs/heads/x",
    "ls-remote canary:x",
    "push canary-push:x HEAD",
    "ls-remote ssh://example.invalid/x",
    "ls-remote git://example.invalid/x",
    "difftool -y --tool=canary",
    "archive --format=canary HEAD",
    "interpret-trailers --trailer canary=x signed",
    "canary",
    "submodule update",
    "rebase -i HEAD",
    "var GIT_EDITOR",
    "@ commit -q -a",
)
_CALL_SECONDS = 20


def call_plain_git(hostile: PlantedRepository, environment: Mapping[str, str] = ENVIRONMENT) -> None:
    """Run each call with plain git. A call may fail; the test checks which programs ran."""
    for call in CALLS:
        words = call.format(top=hostile.top).split()
        where = hostile.linked.work_tree if words[0] == "@" else hostile.repo.path
        subprocess.run(
            ["git", *words[words[0] == "@" :]],
            cwd=where,
            env={**environment, **hostile.env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CALL_SECONDS,
            check=False,
        )
