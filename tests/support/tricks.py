"""S-08: ways in which a repository makes plain git run a program, each planted in a real one."""

import os
from collections.abc import Callable
from pathlib import Path

from bullpen.git.git_directories import GitDirectories
from support.repositories import Repo


class Trap:
    """A repository with a linked worktree, changed files in both, and a program that leaves a canary."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.canary = top / "canary"
        self.program = top / "evil.sh"
        self.program.write_text(f"#!/bin/sh\ntouch {self.canary}\ncat\n")
        self.program.chmod(0o755)
        self.repo = Repo(top / "repo")
        self.repo.write("src/code.txt", "one\n")
        self.repo.write("src/more.txt", "two\n")
        self.head = self.repo.commit("second")
        self.linked = self.repo.linked("topic")
        self.touch()

    @property
    def places(self) -> tuple[GitDirectories, GitDirectories]:
        return self.repo.place, self.linked

    def touch(self) -> None:
        """Changes git has to read the content of."""
        for place in self.places:
            (place.work_tree / "src" / "code.txt").write_text("changed\n")
            os.utime(place.work_tree / "src" / "more.txt", (1, 1))

    def forget(self) -> None:
        """Remove the trace of a program that ran."""
        self.canary.unlink(missing_ok=True)

    def configure(self, *pairs: tuple[str, str]) -> None:
        for key, value in pairs:
            self.repo.git("config", key, value)

    def attribute(self, line: str) -> None:
        """In force without a commit, for both work trees."""
        file = self.repo.git_dir / "info" / "attributes"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{line}\n")

    def evil_git_dir(self) -> Path:
        """A copy of a git directory whose config runs the program."""
        evil = Repo(self.top / "evil")
        evil.git("config", "core.fsmonitor", str(self.program))
        evil.git("config", "core.worktree", str(self.linked.work_tree))
        return evil.git_dir


Plant = Callable[[Trap], None]


def fsmonitor(trap: Trap) -> None:
    trap.configure(("core.fsmonitor", str(trap.program)))


def hooks(trap: Trap) -> None:
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit"):
        hook = trap.repo.git_dir / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(trap.program.read_text())
        hook.chmod(0o755)


def hooks_path(trap: Trap) -> None:
    hooks(trap)
    (trap.repo.git_dir / "hooks").rename(trap.top / "elsewhere")
    trap.configure(("core.hooksPath", str(trap.top / "elsewhere")))


def submodule_fsmonitor(trap: Trap) -> None:
    inner = Repo(trap.top / "inner")
    trap.repo.git("submodule", "add", "-q", str(inner.path), "sub")
    trap.repo.commit("submodule")
    trap.repo.git("config", "core.fsmonitor", str(trap.program), cwd=trap.repo.path / "sub")
    trap.configure(
        ("status.submoduleSummary", "true"), ("diff.submodule", "diff"), ("submodule.recurse", "true")
    )
    (trap.repo.path / "sub" / "readme.txt").write_text("changed\n")
    trap.touch()


def embedded_bare(trap: Trap) -> None:
    bare = trap.repo.path / "bare"
    trap.repo.git("init", "-q", "--bare", str(bare))
    trap.repo.git("config", "core.bare", "false", cwd=bare)
    trap.repo.git("config", "core.worktree", str(trap.repo.path), cwd=bare)
    trap.repo.git("config", "core.fsmonitor", str(trap.program), cwd=bare)


def rewritten_dot_git(trap: Trap) -> None:
    (trap.linked.work_tree / ".git").write_text(f"gitdir: {trap.evil_git_dir()}\n")


def rewritten_commondir(trap: Trap) -> None:
    (trap.linked.git_dir / "commondir").write_text(f"{trap.evil_git_dir()}\n")
    (trap.repo.git_dir / "commondir").write_text(f"{trap.top / 'evil' / '.git'}\n")


def config_worktree(trap: Trap) -> None:
    trap.configure(("extensions.worktreeConfig", "true"))
    for place in trap.places:
        (place.git_dir / "config.worktree").write_text(f"[core]\n\tfsmonitor = {trap.program}\n")


def external_diff(trap: Trap) -> None:
    trap.configure(("diff.external", str(trap.program)), ("diff.evil.command", str(trap.program)))
    trap.attribute("src/more.txt diff=evil")


def textconv(trap: Trap) -> None:
    trap.configure(("diff.evil.textconv", str(trap.program)))
    trap.attribute("* diff=evil")


def filters(trap: Trap) -> None:
    for part in ("clean", "smudge"):
        trap.configure((f"filter.evil.{part}", str(trap.program)))
    trap.configure(("filter.evil.required", "true"))
    trap.attribute("* filter=evil")


def filter_process(trap: Trap) -> None:
    trap.configure(("filter.evil.process", str(trap.program)))
    trap.attribute("* filter=evil")


def filter_with_equals(trap: Trap) -> None:
    """`-c filter.a=b.clean=` would set another key."""
    with (trap.repo.git_dir / "config").open("a") as config:
        config.write(f'[filter "a=b"]\n\tclean = {trap.program}\n\tsmudge = {trap.program}\n')
    trap.attribute("* filter=a=b")


def included_config(trap: Trap) -> None:
    more = trap.top / "more.config"
    more.write_text(f'[core]\n\tfsmonitor = {trap.program}\n[filter "evil"]\n\tclean = {trap.program}\n')
    trap.configure(("include.path", str(more)))
    trap.attribute("* filter=evil")


def output_ref(trap: Trap) -> None:
    """A branch nobody can make with git, but a file system can: `git diff <branch>` then writes a file."""
    name = trap.repo.git_dir / "refs" / "heads" / f"--output={trap.canary}".replace("/", "_")
    name.parent.mkdir(exist_ok=True)
    name.write_text(f"{trap.head}\n")


TRICKS: dict[
    Plant, tuple[str, ...]
] = {  # each with a call of plain git that falls for it; `@` is the linked one
    fsmonitor: ("status",),
    hooks: ("worktree", "add", "-q", "{top}/proof"),
    hooks_path: ("worktree", "add", "-q", "{top}/proof"),
    submodule_fsmonitor: ("status",),
    embedded_bare: ("@bare", "status"),
    rewritten_dot_git: ("@", "status"),
    rewritten_commondir: ("@", "status"),
    config_worktree: ("status",),
    external_diff: ("diff",),
    textconv: ("diff",),
    filters: ("status",),
    filter_process: ("status",),
    filter_with_equals: ("status",),
    included_config: ("status",),
    output_ref: ("diff", "--output={canary}"),
}
