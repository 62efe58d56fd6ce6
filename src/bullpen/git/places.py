"""Where git works: directories that we determined, never those a `.git` file in a workspace names."""

from pathlib import Path

from msgspec import Struct


class Place(Struct, frozen=True, kw_only=True):
    """One work tree and the git directories that belong to it.

    `git_dir` holds HEAD and the index, `common_dir` objects, refs and the config. They differ in a
    linked worktree.
    """

    git_dir: Path
    common_dir: Path
    work_tree: Path

    @classmethod
    def main(cls, git_dir: Path, work_tree: Path) -> "Place":
        """The repository's own work tree."""
        return cls(git_dir=git_dir, common_dir=git_dir, work_tree=work_tree)
