"""Refs that keep what a removed worktree needs from git's own cleaning."""

from .places import GitDirectories
from .run import run_git

_GITLINK = b"160000"


async def anchor(place: GitDirectories, head: str | None, id: str) -> None:
    """Keeps the last commit, and all that is staged, committed or not."""
    wanted = {"index": await _staged(place)}
    if head:
        wanted["head"] = head
    orders = [f"update {_ref(id, what)}\0{value}\0\0" for what, value in wanted.items()]
    await run_git(place, "update-ref", "--stdin", "-z", stdin="".join(orders).encode())


async def release(repository: GitDirectories, id: str) -> None:
    orders = [f"delete {_ref(id, what)}\0\0" for what in ("index", "head")]
    await run_git(repository, "update-ref", "--stdin", "-z", stdin="".join(orders).encode())


async def _staged(place: GitDirectories) -> str:
    """A tree of every blob in the index. Numbered, not named: a conflict has three under one name."""
    listed = await run_git(place, "ls-files", "--stage", "-z", timeout=60, limit=1 << 28)
    entries = [line.split(b" ", 2) for line in listed.output.split(b"\0") if line]
    blobs = sorted({oid for mode, oid, _ in entries if mode != _GITLINK})
    lines = [b"100644 blob %s\t%d" % (oid, n) for n, oid in enumerate(blobs)]
    made = await run_git(place, "mktree", "-z", stdin=b"".join(line + b"\0" for line in lines), timeout=60)
    return made.output.decode().strip()


def _ref(id: str, what: str) -> str:
    return f"refs/bullpen/trash/{id}/{what}"
