"""S-08: settings that run programs, planted by each route on which git reads settings."""

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from bullpen.git.configuration import Setting, render
from support.config_keys import HOOKS, PROGRAM, SWITCHES, planted_settings
from support.repositories import ENVIRONMENT, Repo
from support.tricks import Trap

_FILTERS = ("filter.<driver>.clean", "filter.<driver>.smudge")  # git needs the content back
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


class PlantedTrap(Trap):
    """A trap in which each key has a program of its own. `env` is what its route adds to the environment."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.ran = top / "ran"
        self.ran.mkdir()
        self._programs = top / "programs"
        self._programs.mkdir()
        self.env: dict[str, str] = {}
        self.home = top / "user"
        (self.home / ".config" / "git").mkdir(parents=True)
        self._sign_a_commit()
        self.settings = [
            (self._fill(key, name), self._fill(key, value)) for key, name, value in planted_settings()
        ]
        self.settings += [("remote.local.url", str(self.repo.path)), ("gpg.format", "openpgp")]

    def what_ran(self) -> set[str]:
        return {file.read_text().strip() for file in self.ran.iterdir()}

    def forget(self) -> None:
        for file in self.ran.iterdir():
            file.unlink()

    def make_program(self, key: str) -> Path:
        """Make a script that notes that it ran for this key."""
        number = f"{len(list(self._programs.iterdir()))}"
        script = self._programs / number
        note = f"echo '{key}' > {self.ran / number}"
        script.write_text(f"#!/bin/sh\n{note}\n{'exec cat' if key in _FILTERS else 'exit 0'}\n")
        script.chmod(0o755)
        return script

    def configure_locally(self, settings: list[Setting]) -> None:
        with (self.repo.git_dir / "config").open("ab") as config:
            config.write(render(settings))

    def _fill(self, key: str, text: str) -> str:
        if HOOKS in text:
            return text.replace(HOOKS, str(self._hooks(key)))
        return text.replace(PROGRAM, str(self.make_program(key))) if PROGRAM in text else text

    def _hooks(self, key: str) -> Path:
        script = self.make_program(key)
        directory = script.with_name(f"{script.name}.hooks")
        directory.mkdir()
        for name in _HOOK_NAMES:
            (directory / name).symlink_to(script)
        (directory / "hooks").symlink_to(".")
        return directory

    def _sign_a_commit(self) -> None:
        """Let the checked out commits look signed, so that git asks a program about the signature."""
        for place in self.places:
            head, _, message = self.repo.git("cat-file", "commit", "HEAD", cwd=place.work_tree).partition(
                "\n\n"
            )
            begin, end = "-----BEGIN PGP SIGNATURE-----", "-----END PGP SIGNATURE-----"
            raw = self.top / "signed"
            raw.write_text(f"{head}\ngpgsig {begin}\n \n x\n {end}\n\n{message}")
            signed = self.repo.git("hash-object", "-t", "commit", "-w", str(raw)).strip()
            self.repo.git("update-ref", "HEAD", signed, cwd=place.work_tree)


Route = Callable[[PlantedTrap], None]


def local(trap: PlantedTrap) -> None:
    trap.attribute(_ATTRIBUTES)
    trap.configure_locally(list(trap.settings))


def worktree_config(trap: PlantedTrap) -> None:
    trap.attribute(_ATTRIBUTES)
    trap.configure_locally([("extensions.worktreeConfig", "true")])
    for place in trap.places:
        (place.git_dir / "config.worktree").write_bytes(render(trap.settings))


def _include(trap: PlantedTrap, key: str, settings: list[Setting]) -> None:
    trap.attribute(_ATTRIBUTES)
    included = trap.top / "included"
    included.write_bytes(render(settings))
    trap.configure_locally([(key, str(included))])


def include(trap: PlantedTrap) -> None:
    _include(trap, "include.path", list(trap.settings))


def include_if_gitdir(trap: PlantedTrap) -> None:
    _include(trap, "includeIf.gitdir:**.path", list(trap.settings))


def include_if_gitdir_of_a_worktree(trap: PlantedTrap) -> None:
    _include(trap, "includeIf.gitdir:**/worktrees/**.path", list(trap.settings))


def include_if_gitdir_ignoring_case(trap: PlantedTrap) -> None:
    _include(trap, "includeIf.gitdir/i:**/REPO/**.path", list(trap.settings))


def include_if_onbranch(trap: PlantedTrap) -> None:
    _include(trap, "includeIf.onbranch:**.path", list(trap.settings))


def include_if_onbranch_of_a_new_worktree(trap: PlantedTrap) -> None:
    """The branch `plain` is made by `CALLS`, the branch `added` by a place that calls git."""
    for branch in ("plain", "added"):
        _include(trap, f"includeIf.onbranch:{branch}.path", list(trap.settings))


def include_if_hasconfig(trap: PlantedTrap) -> None:
    """Git refuses to include a remote's URL on this condition."""
    trap.configure_locally([("remote.known.url", "https://example.invalid/x")])
    settings: list[Setting] = [(key, value) for key, value in trap.settings if not key.endswith(".url")]
    _include(trap, "includeIf.hasconfig:remote.*.url:https://example.invalid/**.path", settings)


def submodule(trap: PlantedTrap) -> None:
    """The settings are those of a submodule; the repository itself asks git to look into it."""
    inner = Repo(trap.top / "inner")
    trap.repo.git("submodule", "add", "-q", str(inner.path), "sub")
    trap.head = trap.repo.commit("submodule")
    directory = trap.repo.git_dir / "modules" / "sub"
    with (directory / "config").open("ab") as config:
        config.write(render(trap.settings))
    (directory / "info" / "attributes").write_text("* filter=plain diff=textconv\n")
    trap.configure_locally([each for key in SWITCHES for each in SWITCHES[key].items()])
    (trap.repo.path / "sub" / "readme.txt").write_text("changed\n")
    trap.touch()


def user(trap: PlantedTrap) -> None:
    trap.attribute(_ATTRIBUTES)
    (trap.home / ".gitconfig").write_bytes(render(trap.settings))
    trap.env["HOME"] = str(trap.home)


def user_xdg(trap: PlantedTrap) -> None:
    trap.attribute(_ATTRIBUTES)
    (trap.home / ".config" / "git" / "config").write_bytes(render(trap.settings))
    trap.env["HOME"] = str(trap.home)


def environment_settings(trap: PlantedTrap) -> None:
    trap.attribute(_ATTRIBUTES)
    trap.env["GIT_CONFIG_COUNT"] = str(len(trap.settings))
    for number, (key, value) in enumerate(trap.settings):
        trap.env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}


def environment_files(trap: PlantedTrap) -> None:
    trap.attribute(_ATTRIBUTES)
    files = [trap.top / "system", trap.top / "global"]
    for file in files:
        file.write_bytes(render(trap.settings))
    trap.env |= {"GIT_CONFIG_SYSTEM": str(files[0]), "GIT_CONFIG_GLOBAL": str(files[1])}
    trap.env["GIT_CONFIG_NOSYSTEM"] = "0"


def environment_programs(trap: PlantedTrap) -> None:
    trap.env |= {name: str(trap.make_program(f"${name}")) for name in _VARIABLES}


def environment_directories(trap: PlantedTrap) -> None:
    """The environment names another git directory, with these settings."""
    evil = Repo(trap.top / "evil").git_dir
    with (evil / "config").open("ab") as config:
        config.write(render([*trap.settings, ("core.worktree", str(trap.repo.path))]))
    (evil / "info" / "attributes").write_text("* filter=plain diff=textconv\n")
    trap.env |= {"GIT_DIR": str(evil), "GIT_COMMON_DIR": str(evil)}


def tracked_attributes(trap: PlantedTrap) -> None:
    for place in trap.places:
        (place.work_tree / ".gitattributes").write_text(_ATTRIBUTES)
        trap.repo.git("add", ".gitattributes", cwd=place.work_tree)
        trap.repo.git("commit", "-q", "-m", "attributes", cwd=place.work_tree)
    trap.head = trap.repo.git("rev-parse", "HEAD").strip()
    trap.configure_locally(list(trap.settings))


def attributes_of_user(trap: PlantedTrap) -> None:
    (trap.home / ".config" / "git" / "attributes").write_text(_ATTRIBUTES)
    trap.env["HOME"] = str(trap.home)
    trap.configure_locally(list(trap.settings))


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

# Calls of plain git, as people and agents type them. `@` begins a call in the linked worktree.
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


def call_plain_git(trap: PlantedTrap, environment: Mapping[str, str] = ENVIRONMENT) -> None:
    """Run each call with git as it is. A call may fail; the question is which programs it runs."""
    for call in CALLS:
        words = call.format(top=trap.top).split()
        where = trap.linked.work_tree if words[0] == "@" else trap.repo.path
        subprocess.run(
            ["git", *words[words[0] == "@" :]],
            cwd=where,
            env={**environment, **trap.env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_CALL_SECONDS,
            check=False,
        )
