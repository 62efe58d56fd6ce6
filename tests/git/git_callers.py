"""Every function of the server that calls git, and how a test calls it. A new function must be added here."""

from collections.abc import Awaitable, Callable

from bullpen.domain.errors import BullpenError
from bullpen.git import anchors, changes, diff, file_names, revisions, worktree_includes, worktrees
from bullpen.git.git_directories import GitDirectories
from support.git_exploits import HostileRepository

GitCaller = Callable[[HostileRepository], Awaitable[object]]


async def _call_on_both(
    trap: HostileRepository, call: Callable[..., Awaitable[object]], *more: object
) -> None:
    for place in trap.all_git_directories:
        await call(place, *more)


async def _read_lists(place: GitDirectories) -> None:
    await diff._read_lists(place, "HEAD")


async def _add(trap: HostileRepository) -> None:
    path = trap.top / "added"
    path.mkdir()
    await worktrees.create_branch(trap.repo.git_directories, "added", trap.head)
    await worktrees.add_worktree(trap.repo.git_directories, path, "added")
    await changes.read_loss(
        (await worktrees.find_worktree(trap.repo.git_directories, "added")).git_dirs, "added"
    )


async def _discard(trap: HostileRepository) -> None:
    trap.repo.git(
        "-c", "core.hooksPath=/dev/null", "worktree", "add", "-q", "--no-checkout", f"{trap.top}/discarded"
    )
    trap.clear_traces()  # plain git may have run it just now
    await worktrees.discard_worktree(trap.repo.git_directories, trap.top / "discarded")


async def _add_and_remove_refs(trap: HostileRepository) -> None:
    await anchors.add_refs(trap.linked, trap.head, "x")
    await anchors.remove_refs(trap.repo.git_directories, "x")


GIT_CALLERS: dict[str, GitCaller] = {
    "git.worktrees.list_worktrees": lambda trap: worktrees.list_worktrees(trap.repo.git_directories),
    "git.revisions.find_commit": lambda trap: _call_on_both(trap, revisions.find_commit, "HEAD"),
    "git.worktrees.branch_head": lambda trap: _call_on_both(trap, worktrees.branch_head, "main"),
    "git.worktrees.remote_head": lambda trap: _call_on_both(trap, worktrees.remote_head, "main"),
    "git.worktrees.list_branches": lambda trap: _call_on_both(trap, worktrees.list_branches),
    "git.worktrees.create_branch": lambda trap: worktrees.create_branch(
        trap.repo.git_directories, "made", trap.head
    ),
    "git.worktrees.delete_branch": lambda trap: worktrees.delete_branch(
        trap.repo.git_directories, "made", trap.head
    ),
    "git.worktrees.add_worktree": _add,
    "git.worktrees.discard_worktree": _discard,
    "git.changes.read_status": lambda trap: _call_on_both(trap, changes.read_status),
    "git.changes.read_loss": lambda trap: _call_on_both(trap, changes.read_loss, "topic"),
    "git.diff._main_lines": lambda trap: _call_on_both(trap, diff._main_lines),
    "git.diff._merge_base": lambda trap: _call_on_both(trap, diff._merge_base, "HEAD", trap.head),
    "git.diff._read_patches": lambda trap: _call_on_both(trap, diff.read_diff),
    "git.diff._read_lists": lambda trap: _call_on_both(trap, _read_lists),
    "git.diff._read_committed": lambda trap: _call_on_both(trap, diff._read_committed, trap.head),
    "git.diff._read_staged": lambda trap: _call_on_both(trap, diff.read_diff),
    "git.diff._read_untracked": lambda trap: _call_on_both(trap, diff.read_diff),
    "git.diff._read_branch": lambda trap: _call_on_both(trap, diff._read_branch),
    "git.anchors._update_refs": _add_and_remove_refs,
    "git.anchors._index_tree": lambda trap: _call_on_both(trap, anchors._index_tree),
    "git.file_names.list_file_names": lambda trap: _call_on_both(trap, file_names.list_file_names),
    "git.worktree_includes.included_files": lambda trap: _call_on_both(
        trap, worktree_includes.included_files, ["*.txt"]
    ),
}


async def call_git(caller: GitCaller, trap: HostileRepository) -> str | None:
    """Call the function and return why it refused the repository, or None if it did not."""
    try:
        await caller(trap)
    except BullpenError as refusal:
        return str(refusal)
    return None
