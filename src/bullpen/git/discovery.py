"""Find the work tree that contains a directory, without running git, and check what its files claim."""

import os
from pathlib import Path

from .git_directories import GitDirectories
from .small_files import read_text

_POINTER = "gitdir: "
_MAX_ALTERNATES = 20  # object directories of other repositories that a repository reads


def find_git_directories(directory: Path) -> GitDirectories | None:
    """Return the work tree that contains a directory, with its git directories; None without one."""
    for work_tree in (directory, *directory.parents):
        dot_git = work_tree / ".git"
        if dot_git.is_symlink():
            return None
        if dot_git.is_dir():
            return GitDirectories.main(dot_git, work_tree) if is_git_dir(dot_git) else None
        if dot_git.is_file():
            return _linked(work_tree, dot_git)
    return None


def object_directories(common_dir: Path) -> list[Path]:
    """Return the object directories of other repositories that a repository reads (its alternates).

    A run can write the file that names them, so only directories of objects are returned.
    """
    found: list[Path] = []
    waiting = [common_dir / "objects"]
    while waiting and len(found) < _MAX_ALTERNATES:
        objects = waiting.pop()
        for line in read_text(objects / "info" / "alternates").splitlines()[:_MAX_ALTERNATES]:
            other = Path(os.path.realpath(objects / line.replace("\0", "")))
            if other.name == "objects" and is_git_dir(other.parent) and other not in found:
                found.append(other)
                waiting.append(other)
    return found


def _linked(work_tree: Path, dot_git: Path) -> GitDirectories | None:
    """Return a linked worktree, or None.

    The repository that the worktree names must list it, and must not be inside it.
    """
    pointer = read_text(dot_git)
    if not pointer.startswith(_POINTER):
        return None
    git_dir = (work_tree / pointer.removeprefix(_POINTER)).resolve()
    common = git_dir.parent.parent
    is_worktree = git_dir.parent.name == "worktrees" and is_git_dir(common)
    if not is_worktree or common.is_relative_to(work_tree.resolve()):
        return None
    if (git_dir / read_text(git_dir / "gitdir")).resolve() != dot_git.resolve():
        return None
    return GitDirectories(git_dir=git_dir, common_dir=common, work_tree=work_tree)


def is_git_dir(path: Path) -> bool:
    """Return whether a directory has the layout of a git directory."""
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()
