"""Which repository a directory belongs to, found without asking git and without believing much."""

from pathlib import Path

from .places import GitDirectories

_POINTER = "gitdir: "
_MOST = 4096  # bytes of a file that names a directory


def find_place(directory: Path) -> GitDirectories | None:
    """The work tree that holds a directory, or None."""
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
    """A linked worktree, when the repository it names knows it and does not lie inside it."""
    said = _read(dot_git)
    if not said.startswith(_POINTER):
        return None
    git_dir = (work_tree / said.removeprefix(_POINTER)).resolve()
    common = git_dir.parent.parent
    known = git_dir.parent.name == "worktrees" and _is_git_dir(common)
    if not known or common.is_relative_to(work_tree.resolve()):
        return None
    if (git_dir / _read(git_dir / "gitdir")).resolve() != dot_git.resolve():
        return None
    return GitDirectories(git_dir=git_dir, common_dir=common, work_tree=work_tree)


def _is_git_dir(path: Path) -> bool:
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_MOST).strip()
    except OSError:
        return ""
