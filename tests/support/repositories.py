"""Real git repositories for tests, created with plain git as a user does."""

import os
import subprocess
from pathlib import Path

from bullpen.git.git_directories import GitDirectories

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A Person",
    "GIT_AUTHOR_EMAIL": "person@example.org",
    "GIT_COMMITTER_NAME": "A Person",
    "GIT_COMMITTER_EMAIL": "person@example.org",
}


class Repo:
    """A repository with one commit. `git` runs plain git in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")
        self.write("readme.txt", "hello\n")
        self.commit("first")

    @property
    def git_dir(self) -> Path:
        return self.path / ".git"

    @property
    def git_directories(self) -> GitDirectories:
        return GitDirectories.main(self.git_dir, self.path)

    def git(self, *arguments: str, cwd: Path | None = None, check: bool = True) -> str:
        command = ["git", "-c", "protocol.file.allow=always", *arguments]
        done = subprocess.run(
            command, cwd=cwd or self.path, env=ENVIRONMENT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout

    def write(self, name: str, text: str) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def commit(self, message: str, cwd: Path | None = None) -> str:
        self.git("add", "-A", cwd=cwd)
        self.git("commit", "-q", "--allow-empty", "-m", message, cwd=cwd)
        return self.git("rev-parse", "HEAD", cwd=cwd).strip()

    def add_worktree(self, name: str) -> GitDirectories:
        """Add a linked worktree with plain git, beside the repository."""
        work_tree = self.path.with_name(f"{self.path.name}.worktrees") / name
        self.git("worktree", "add", "-q", "-b", name, str(work_tree))
        return GitDirectories(
            git_dir=self.git_dir / "worktrees" / name, common_dir=self.git_dir, work_tree=work_tree
        )
