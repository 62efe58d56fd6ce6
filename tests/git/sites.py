"""Every place of the server that calls git, and how a test gets there. A new one must be entered here."""

from collections.abc import Awaitable, Callable

from bullpen.domain.errors import BullpenError
from bullpen.git import anchors, changes, diff, includes, revisions, worktrees
from bullpen.git.places import GitDirectories
from support.git_exploits import HostileRepository

Site = Callable[[HostileRepository], Awaitable[object]]


async def _on_both(trap: HostileRepository, call: Callable[..., Awaitable[object]], *more: object) -> None:
    for place in trap.all_git_directories:
        await call(place, *more)


async def _lists(place: GitDirectories) -> None:
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
        "-c", "core.hooksPath=/dev/null", "worktree", "add", "-q", "--no-checkout", f"{trap.top}/going"
    )
    trap.clear_traces()  # plain git, just now
    await worktrees.discard_worktree(trap.repo.git_directories, trap.top / "going")


async def _anchored(trap: HostileRepository) -> None:
    await anchors.add_refs(trap.linked, trap.head, "x")
    await anchors.remove_refs(trap.repo.git_directories, "x")


SITES: dict[str, Site] = {
    "git.worktrees.list_worktrees": lambda trap: worktrees.list_worktrees(trap.repo.git_directories),
    "git.revisions.find_commit": lambda trap: _on_both(trap, revisions.find_commit, "HEAD"),
    "git.worktrees.branch_head": lambda trap: _on_both(trap, worktrees.branch_head, "main"),
    "git.worktrees.remote_head": lambda trap: _on_both(trap, worktrees.remote_head, "main"),
    "git.worktrees.create_branch": lambda trap: worktrees.create_branch(
        trap.repo.git_directories, "made", trap.head
    ),
    "git.worktrees.delete_branch": lambda trap: worktrees.delete_branch(
        trap.repo.git_directories, "made", trap.head
    ),
    "git.worktrees.add_worktree": _add,
    "git.worktrees.discard_worktree": _discard,
    "git.changes.read_status": lambda trap: _on_both(trap, changes.read_status),
    "git.changes.read_loss": lambda trap: _on_both(trap, changes.read_loss, "topic"),
    "git.diff._main_lines": lambda trap: _on_both(trap, diff._main_lines),
    "git.diff._merge_base": lambda trap: _on_both(trap, diff._merge_base, "HEAD", trap.head),
    "git.diff._read_patches": lambda trap: _on_both(trap, diff.read_diff),
    "git.diff._read_lists": lambda trap: _on_both(trap, _lists),
    "git.diff._read_committed": lambda trap: _on_both(trap, diff._read_committed, trap.head),
    "git.diff._read_staged": lambda trap: _on_both(trap, diff.read_diff),
    "git.diff._read_untracked": lambda trap: _on_both(trap, diff.read_diff),
    "git.diff._read_branch": lambda trap: _on_both(trap, diff._read_branch),
    "git.anchors.add_refs": _anchored,
    "git.anchors.remove_refs": lambda trap: anchors.remove_refs(trap.repo.git_directories, "y"),
    "git.anchors._index_tree": lambda trap: _on_both(trap, anchors._index_tree),
    "git.includes.included_files": lambda trap: _on_both(trap, includes.included_files, ["*.txt"]),
}


async def visit(site: Site, trap: HostileRepository) -> str | None:
    """Call a site and return why it refused, or None. A site may refuse what it finds; it may not run it."""
    try:
        await site(trap)
    except BullpenError as refusal:
        return str(refusal)
    return None
