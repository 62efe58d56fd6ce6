"""Protect the objects of a removed worktree from `git gc` by refs, so that it can be restored."""

from .git_directories import GitDirectories
from .run import run_git

_GITLINK = b"160000"


async def add_refs(git_dirs: GitDirectories, head: str | None, id: str) -> None:
    """Add refs to the last commit and to everything in the index of a worktree; `id` names them."""
    targets = {"index": await _index_tree(git_dirs)}
    if head:
        targets["head"] = head
    commands = [f"update {_ref(id, name)}\0{target}\0\0" for name, target in targets.items()]
    await _update_refs(git_dirs, commands)


async def remove_refs(repository: GitDirectories, id: str) -> None:
    """Remove the refs that `add_refs` has added."""
    commands = [f"delete {_ref(id, name)}\0\0" for name in ("index", "head")]
    await _update_refs(repository, commands)


async def _update_refs(git_dirs: GitDirectories, commands: list[str]) -> None:
    """Let git perform commands that change refs, all or none."""
    stdin = "".join(commands).encode()
    await run_git(git_dirs, "update-ref", "--stdin", "-z", stdin=stdin, writes=[git_dirs.common_dir])


async def _index_tree(git_dirs: GitDirectories) -> str:
    """Make a tree of all blobs in the index, and return its id.

    The entries are numbered: in a merge conflict three blobs have the same path.
    """
    listed = await run_git(git_dirs, "ls-files", "--stage", "-z", timeout=60, limit=1 << 28)
    entries = [line.split(b" ", 2) for line in listed.output.split(b"\0") if line]
    blobs = sorted({oid for mode, oid, _ in entries if mode != _GITLINK})
    lines = [b"100644 blob %s\t%d" % (oid, n) for n, oid in enumerate(blobs)]
    stdin, writes = b"".join(line + b"\0" for line in lines), [git_dirs.common_dir]
    made = await run_git(git_dirs, "mktree", "-z", stdin=stdin, timeout=60, writes=writes)
    return made.output.decode().strip()


def _ref(id: str, name: str) -> str:
    """Return the name of a ref that protects objects of a worktree in the trash."""
    return f"refs/bullpen/trash/{id}/{name}"
