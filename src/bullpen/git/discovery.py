"""Find the work tree that contains a directory, without running git, and check what its files claim."""

from pathlib import Path

from .git_directories import GitDirectories

_POINTER = "gitdir: "
_MAX_POINTER_BYTES = 4096  # of a file that names a directory


def find_git_directories(directory: Path) -> GitDirectories | None:
    """Return the work tree that contains a directory, with its git directories; None without one."""
    for work_tree in (directory, *directory.parents):
        dot_git = work_tree / ".git"
        if dot_git.is_symlink():
            return None
        if dot_git.is_dir():
            return GitDirectories.main(dot_git, work_tree) if _is_git_dir(dot_git) else None
        if dot_git.is_file():
            return _linked(work_tree, dot_git)
    return None


def _linked(work_tree: Path, dot_git: Path) -> GitDirectories | None:
    """Return a linked worktree, or None.

    The repository that the worktree names must list it, and must not be inside it.
    """
    pointer = _read(dot_git)
    if not pointer.startswith(_POINTER):
        return None
    git_dir = (work_tree / pointer.removeprefix(_POINTER)).resolve()
    common = git_dir.parent.parent
    is_worktree = git_dir.parent.name == "worktrees" and _is_git_dir(common)
    if not is_worktree or common.is_relative_to(work_tree.resolve()):
        return None
    if (git_dir / _read(git_dir / "gitdir")).resolve() != dot_git.resolve():
        return None
    return GitDirectories(git_dir=git_dir, common_dir=common, work_tree=work_tree)


def _is_git_dir(path: Path) -> bool:
    """Return whether a directory has the layout of a git directory."""
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()


def _read(path: Path) -> str:
    """Return the start of a small file, empty if it cannot be read."""
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_MAX_POINTER_BYTES).strip()
    except OSError:
        return ""
