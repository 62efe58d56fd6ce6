"""Hold all children of a keeper, by worker and run, until the server acknowledges their exit."""

from __future__ import annotations

import errno
import os
import resource
import signal

from .child import start_child
from .directories import remove_tree
from .stream import RETRY_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .child import Child
    from .loop import EventLoop
    from .spawn import SpawnRequest
    from .stream import OutputStream


class Children:
    """Spawns, finds, reaps and forgets the children of this keeper."""

    def __init__(
        self, spools: int, loop: EventLoop, grown: set[OutputStream], on_exit: Callable[[Child], None]
    ) -> None:
        self._children: dict[tuple[str, int], Child] = {}
        self._spools = spools
        self._loop = loop
        self._grown = grown
        self._on_exit = on_exit
        self._soft_file_limit = _raise_file_limit()
        loop.signals.on(signal.SIGCHLD, self._reap)

    def __iter__(self) -> Iterator[Child]:
        return iter(self._children.values())

    def __len__(self) -> int:
        return len(self._children)

    def spawn(self, request: SpawnRequest) -> Child:
        """Start a child and return it; for a nonce seen before, return the child that was started then.

        Raise OSError if another child has this worker and run.
        """
        for child in self:
            if child.nonce == request.nonce:
                return child
        if (request.worker, request.run) in self._children:
            raise OSError(errno.EEXIST, f"there is a child {request.worker}/{request.run} already")
        request.limits.setdefault(resource.RLIMIT_NOFILE, self._soft_file_limit)
        self._loop.use_normal_priority()
        child = start_child(request, self._spools, self._loop, self._grown, self._on_exit)
        self._children[request.worker, request.run] = child
        return child

    def find(self, worker: str, run: int) -> Child:
        """Return a child whose exit is not acknowledged, or raise OSError (ESRCH)."""
        child = self._children.get((worker, run))
        if child is None:
            raise OSError(errno.ESRCH, f"there is no child {worker}/{run}")
        return child

    def find_running(self, worker: str, run: int) -> Child:
        """Return a child whose process has not ended, or raise OSError (ESRCH)."""
        child = self._children.get((worker, run))  # without `find`: keystrokes save a call
        if child is None or not child.running:
            raise OSError(errno.ESRCH, f"child {worker}/{run} {'has ended' if child else 'does not exist'}")
        return child

    def release(self, worker: str, run: int) -> None:
        """Forget a child whose exit is acknowledged, or raise OSError (EBUSY) if it has not ended."""
        child = self.find(worker, run)
        if child.exit is None:
            raise OSError(errno.EBUSY, f"child {worker}/{run} has not ended")
        child.close()
        del self._children[worker, run]

    def remove_spools(self, worker: str) -> None:
        """Remove the spools of all children of a worker. Raise OSError (EBUSY) if one has not ended."""
        if any(child.worker == worker and child.exit is None for child in self):
            raise OSError(errno.EBUSY, f"a child of {worker} has not ended")
        remove_tree(worker, self._spools)

    def _reap(self) -> None:
        """Collect the exit status of each child that has ended."""
        by_pid = {child.pid: child for child in self if child.running}
        while by_pid:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except OSError:  # there is no second signal for these children
                self._loop.call_later(RETRY_SECONDS, self._reap)
                return
            if pid == 0:
                return
            if pid in by_pid:
                by_pid.pop(pid).reap(status)


def _raise_file_limit() -> int:
    """Allow the keeper as many descriptors as possible; return the old soft limit, which its children get."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft
