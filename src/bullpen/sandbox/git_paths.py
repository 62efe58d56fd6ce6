"""Find which paths of a repository a run writes when it uses git, and which of them it must not change."""

import os
from collections.abc import Iterator
from pathlib import Path

from ..git.discovery import find_git_directories
from ..git.git_directories import GitDirectories
from .profile import GitPaths

# Git runs programs that these name. A file that does not exist is not protected: see docs/sandbox.md.
_CONFIGURATION = ("config", "hooks", "info")
_OF_MAIN_WORK_TREE = ("HEAD", "index", "worktrees")
_OF_LINK = ("gitdir", "commondir")


def git_paths(workspace: Path) -> GitPaths:
    """Return the paths for the work tree whose top is the workspace; none if it is not a work tree."""
    directories = find_git_directories(workspace)
    if directories is None or os.path.realpath(directories.work_tree) != os.path.realpath(workspace):
        return GitPaths()
    return _main(directories) if directories.git_dir == directories.common_dir else _linked(directories)


def _main(directories: GitDirectories) -> GitPaths:
    """Return the paths of a main work tree. Its git directory is mounted so that it cannot be renamed."""
    git_dir = directories.git_dir.resolve()
    protected = [git_dir / name for name in _CONFIGURATION]
    return GitPaths(
        writable=(str(git_dir),),
        read_only=(*_existing(protected), *_submodules(git_dir), *_links(git_dir)),
        absent=_absent(protected),
        masked=_worktree_configurations(git_dir, git_dir),
    )


def _linked(directories: GitDirectories) -> GitPaths:
    """Return the paths of a linked worktree: nothing of other worktrees can be written."""
    git_dir, common = directories.git_dir.resolve(), directories.common_dir.resolve()
    protected = [common / name for name in (*_CONFIGURATION, *_OF_MAIN_WORK_TREE)]
    link = [git_dir / name for name in _OF_LINK]
    return GitPaths(
        writable=(str(common), str(git_dir)),
        read_only=(
            *_existing([*protected, *link, directories.work_tree.resolve() / ".git"]),
            *_submodules(common),
        ),
        absent=_absent(common / name for name in _CONFIGURATION),
        masked=_worktree_configurations(common, git_dir),
    )


def _links(git_dir: Path) -> Iterator[str]:
    """Yield the files that lead git from each linked worktree to its repository and configuration."""
    for worktree in (git_dir / "worktrees").glob("*"):
        yield from _existing(worktree / name for name in _OF_LINK)


def _submodules(common: Path) -> Iterator[str]:
    """Yield the configuration and the hooks of each submodule."""
    for head in (common / "modules").glob("**/HEAD"):
        if (head.parent / "objects").is_dir():
            yield from _existing(head.parent / name for name in _CONFIGURATION)


def _worktree_configurations(common: Path, git_dir: Path) -> tuple[str, ...]:
    """Return the file config.worktree if git would read it; it is shown as an empty file."""
    if (git_dir / "config.worktree").exists():
        return (str(git_dir / "config.worktree"),)
    try:
        is_read = b"worktreeconfig" in (common / "config").read_bytes().lower()
    except OSError:
        return ()
    return (str(git_dir / "config.worktree"),) if is_read else ()


def _existing(paths: Iterator[Path] | list[Path]) -> list[str]:
    """Return the paths that exist and are no links: a link could lead anywhere."""
    return [str(path) for path in paths if path.exists() and not path.is_symlink()]


def _absent(paths: Iterator[Path] | list[Path]) -> tuple[str, ...]:
    """Return the paths that do not exist; hooks and info are directories."""
    return tuple(str(path) for path in paths if not os.path.lexists(path) and path.name != "config")
