"""All children of a keeper, by worker and run, until their exit is acknowledged."""

from __future__ import annotations

import errno
import os
import resource
import signal

from .child import start_child
from .directories import remove_tree
from .stream import RETRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .child import Child
    from .loop import EventLoop
    from .spawn import SpawnRequest
    from .stream import OutputStream


class Children:
    def __init__(
        self, spools: int, loop: EventLoop, grown: set[OutputStream], on_exit: Callable[[Child], None]
    ) -> None:
        self._children: dict[tuple[str, int], Child] = {}
        self._spools = spools
        self._loop = loop
        self._grown = grown
        self._on_exit = on_exit
        self._soft_files = _raise_file_limit()
        loop.signals.on(signal.SIGCHLD, self._reap)

    def __iter__(self) -> Iterator[Child]:
        return iter(self._children.values())

    def __len__(self) -> int:
        return len(self._children)

    def spawn(self, order: SpawnRequest) -> Child:
        """A new child; for a nonce seen before, the child it made then."""
        for child in self:
            if child.nonce == order.nonce:
                return child
        if (order.worker, order.run) in self._children:
            raise OSError(errno.EEXIST, f"there is a child {order.worker}/{order.run} already")
        order.limits.setdefault(resource.RLIMIT_NOFILE, self._soft_files)
        self._loop.hurry()
        child = start_child(order, self._spools, self._loop, self._grown, self._on_exit)
        self._children[order.worker, order.run] = child
        return child

    def find(self, worker: str, run: int) -> Child:
        child = self._children.get((worker, run))
        if child is None:
            raise OSError(errno.ESRCH, f"there is no child {worker}/{run}")
        return child

    def running(self, worker: str, run: int) -> Child:
        child = self._children.get((worker, run))  # a key waits: one call less than to `find` it
        if child is None or not child.running:
            raise OSError(errno.ESRCH, f"child {worker}/{run} {'has ended' if child else 'does not exist'}")
        return child

    def release(self, worker: str, run: int) -> None:
        """The server knows how it ended."""
        child = self.find(worker, run)
        if child.exit is None:
            raise OSError(errno.EBUSY, f"child {worker}/{run} has not ended")
        child.close()
        del self._children[worker, run]

    def forget(self, worker: str) -> None:
        """Remove what a worker's children said."""
        if any(child.worker == worker and child.exit is None for child in self):
            raise OSError(errno.EBUSY, f"a child of {worker} has not ended")
        remove_tree(worker, self._spools)

    def _reap(self) -> None:
        by_pid = {child.pid: child for child in self if child.running}
        while by_pid:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except OSError:  # no signal tells of these again
                self._loop.later(RETRY, self._reap)
                return
            if pid == 0:
                return
            if pid in by_pid:
                by_pid.pop(pid).reap(status)


def _raise_file_limit() -> int:
    """As many descriptors as allowed for the keeper; the old soft limit is for its children."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft
