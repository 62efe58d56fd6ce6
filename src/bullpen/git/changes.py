"""Find what would be lost with a worktree: uncommitted changes, and commits that are nowhere else."""

from msgspec import Struct

from .git_directories import GitDirectories
from .run import run_git

MAX_NAMED = 200  # changes or commits that are listed

# The file that git leaves during each unfinished operation.
_UNFINISHED = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}


class WorkTreeStatus(Struct, frozen=True, kw_only=True):
    """How a work tree differs from its last commit, and its branch from the upstream branch."""

    changes: list[tuple[str, str]]  # two letters and a path, as in `git status --short`
    ahead: int = 0
    behind: int = 0


class WorktreeLoss(Struct, frozen=True, kw_only=True):
    """What would be lost with a worktree. The lists are cut, the counts are complete."""

    changes: list[str]
    commits: list[str]
    unfinished: str | None
    change_count: int
    commit_count: int

    def describe(self) -> str:
        """Return a short description, empty if nothing would be lost."""
        losses = []
        if self.change_count:
            losses.append(f"{self.change_count} uncommitted change{'s' * (self.change_count > 1)}")
        if self.commit_count:
            losses.append(f"{self.commit_count} commit{'s' * (self.commit_count > 1)} kept nowhere else")
        if self.unfinished:
            losses.append(f"an unfinished {self.unfinished}")
        return " and ".join(losses)


async def read_status(git_dirs: GitDirectories, timeout: float = 10.0) -> WorkTreeStatus:
    """Return the state of a work tree: its branch, its distance to the upstream, and uncommitted changes.

    Untracked files count as changes, ignored ones do not.
    """
    options = ("--porcelain=v2", "--branch", "-z", "--untracked-files=all")
    result = await run_git(git_dirs, "status", *options, timeout=timeout)
    return _parse(result.output.decode("utf-8", "surrogateescape"))


async def read_loss(git_dirs: GitDirectories, branch: str | None) -> WorktreeLoss:
    """Return the uncommitted changes, and the commits that no other branch, tag or remote has."""
    status = await read_status(git_dirs, timeout=60)
    own = (f"--exclude={branch}",) if branch else ()
    elsewhere = ("--not", *own, "--branches", "--tags", "--remotes")
    options = ("--oneline", "--no-decorate", "--no-color", "HEAD", *elsewhere)
    result = await run_git(git_dirs, "log", *options, accept=(0, 128), timeout=60, cut=True)
    commits = result.output.decode("utf-8", "replace").splitlines() if result.code in (0, -9) else []
    return WorktreeLoss(
        changes=[f"{letters} {path}" for letters, path in status.changes[:MAX_NAMED]],
        commits=commits[:MAX_NAMED],
        unfinished=next(
            (operation for name, operation in _UNFINISHED.items() if (git_dirs.git_dir / name).exists()), None
        ),
        change_count=len(status.changes),
        commit_count=len(commits),
    )


def _parse(output: str) -> WorkTreeStatus:
    """Parse the output of `git status --porcelain=v2 --branch -z`."""
    changes: list[tuple[str, str]] = []
    ahead = behind = 0
    fields = iter(output.split("\0"))
    for field in fields:
        match field[:1]:
            case "1":
                changes.append(_tracked(field, 8))
            case "2":
                changes.append(_tracked(field, 9))
                next(fields)  # the old path
            case "u":
                changes.append(_tracked(field, 10))
            case "?":
                changes.append(("??", field[2:]))
            case "#" if field.startswith("# branch.ab "):
                ahead, behind = (abs(int(count)) for count in field.split()[2:])
    return WorkTreeStatus(changes=changes, ahead=ahead, behind=behind)


def _tracked(field: str, before_path: int) -> tuple[str, str]:
    """Return letters and path of an entry with so many columns before the path."""
    columns = field.split(" ", before_path)
    return columns[1].replace(".", " "), columns[-1]
