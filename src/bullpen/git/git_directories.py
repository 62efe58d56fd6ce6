"""Name the directories that git works with; the server determines them, not a `.git` file in a workspace."""

import os
from pathlib import Path

from msgspec import Struct

from ..domain.errors import Invalid
from .small_files import read_text


class GitDirectories(Struct, frozen=True, kw_only=True):
    """One work tree and the git directories that belong to it.

    `git_dir` holds HEAD and the index, `common_dir` objects, refs and the config. They differ in a
    linked worktree.
    """

    git_dir: Path
    common_dir: Path
    work_tree: Path

    @classmethod
    def main(cls, git_dir: Path, work_tree: Path) -> "GitDirectories":
        """Return the directories of the repository's main work tree."""
        return cls(git_dir=git_dir, common_dir=git_dir, work_tree=work_tree)

    def resolved(self) -> "GitDirectories":
        """Return the real paths of the directories."""
        git_dir, common_dir, work_tree = (
            Path(os.path.realpath(each)) for each in (self.git_dir, self.common_dir, self.work_tree)
        )
        return GitDirectories(git_dir=git_dir, common_dir=common_dir, work_tree=work_tree)


def find_git_dir(directory: Path) -> Path:
    """Return the git directory of a repository that a user registers, or raise Invalid if there is none."""
    dot = directory / ".git"
    if not dot.is_file():
        found = dot
    else:
        pointer = read_text(dot)
        if not pointer.startswith("gitdir: "):
            raise Invalid(f"{dot} does not name a git directory")
        found = directory / pointer.removeprefix("gitdir: ")
    if (found / "commondir").exists():
        raise Invalid(f"{directory} is a worktree; register the repository it belongs to")
    if not (found / "HEAD").is_file():
        raise Invalid(f"{directory} is not a git repository; run `git init` there first")
    return found.resolve()
