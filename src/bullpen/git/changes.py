"""What is in a worktree and nowhere else: what would be lost with it."""

from msgspec import Struct

from .places import GitDirectories
from .run import run_git

MOST = 200  # of each kind that are named

# What git leaves while something is going on, and what that is called.
_UNFINISHED = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
}


class WorkTreeStatus(Struct, frozen=True, kw_only=True):
    """How a work tree differs from its last commit, and its branch from the one it follows."""

    changes: list[tuple[str, str]]  # two letters and a path, as in `git status --short`
    ahead: int = 0
    behind: int = 0


class WorktreeLoss(Struct, frozen=True, kw_only=True):
    """What would go with a worktree. Lists are cut; the counts are not."""

    changes: list[str]
    commits: list[str]
    unfinished: str | None
    change_count: int
    commit_count: int

    def sentence(self) -> str:
        """What it is in a few words; empty when nothing would be lost."""
        said = []
        if self.change_count:
            said.append(f"{self.change_count} uncommitted change{'s' * (self.change_count > 1)}")
        if self.commit_count:
            said.append(f"{self.commit_count} commit{'s' * (self.commit_count > 1)} kept nowhere else")
        if self.unfinished:
            said.append(f"an unfinished {self.unfinished}")
        return " and ".join(said)


async def read_status(place: GitDirectories, timeout: float = 10.0) -> WorkTreeStatus:
    """Uncommitted changes, untracked files included and ignored ones not."""
    options = ("--porcelain=v2", "--branch", "-z", "--untracked-files=all")
    said = await run_git(place, "status", *options, timeout=timeout)
    return _parse(said.output.decode("utf-8", "surrogateescape"))


async def read_loss(place: GitDirectories, branch: str | None) -> WorktreeLoss:
    """Changes nobody committed, and commits that no other branch, tag or remote has."""
    status = await read_status(place, timeout=60)
    own = (f"--exclude={branch}",) if branch else ()
    elsewhere = ("--not", *own, "--branches", "--tags", "--remotes")
    options = ("--oneline", "--no-decorate", "--no-color", "HEAD", *elsewhere)
    said = await run_git(place, "log", *options, accept=(0, 128), timeout=60, cut=True)
    commits = said.output.decode("utf-8", "replace").splitlines() if said.code in (0, -9) else []
    return WorktreeLoss(
        changes=[f"{letters} {path}" for letters, path in status.changes[:MOST]],
        commits=commits[:MOST],
        unfinished=next(
            (word for name, word in _UNFINISHED.items() if (place.git_dir / name).exists()), None
        ),
        change_count=len(status.changes),
        commit_count=len(commits),
    )


def _parse(output: str) -> WorkTreeStatus:
    changes: list[tuple[str, str]] = []
    ahead = behind = 0
    fields = iter(output.split("\0"))
    for field in fields:
        match field[:1]:
            case "1":
                changes.append(_tracked(field, 8))
            case "2":
                changes.append(_tracked(field, 9))
                next(fields)  # where it was renamed from
            case "u":
                changes.append(_tracked(field, 10))
            case "?":
                changes.append(("??", field[2:]))
            case "#" if field.startswith("# branch.ab "):
                ahead, behind = (abs(int(word)) for word in field.split()[2:])
    return WorkTreeStatus(changes=changes, ahead=ahead, behind=behind)


def _tracked(field: str, before_path: int) -> tuple[str, str]:
    words = field.split(" ", before_path)
    return words[1].replace(".", " "), words[-1]
