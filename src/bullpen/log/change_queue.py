"""Run the changes of one log one at a time: plan the change, store it, then publish it.

No task runs here. A caller that is cancelled only stops waiting; its change goes on.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from msgspec import Struct

from ..domain.errors import Unavailable
from ..store.append import Append
from ..store.events import EventStore
from ..store.outbox import Numbers
from .change import CommittedChange

RETRY_SECONDS = 0.5

Plan = Callable[[], Append]


class PendingChange(Struct):
    """A change of a session that waits or is being stored, and the future of its caller.

    A patient change waits while the database takes no writes; other changes are refused.
    """

    plan: Plan
    patient: bool
    future: asyncio.Future[CommittedChange]

    def succeed(self, committed: CommittedChange) -> None:
        """Give the caller the stored change, unless it no longer waits."""
        if not self.future.done():
            self.future.set_result(committed)

    def fail(self, error: BaseException) -> None:
        """Give the caller the exception, unless it no longer waits."""
        if not self.future.done():
            self.future.set_exception(error)


class ChangeQueue:
    """Plans and stores the changes of one log, one at a time.

    `accept` is called with each stored append before its caller gets the result.
    """

    def __init__(self, store: EventStore, accept: Callable[[Append], None]) -> None:
        self._store = store
        self._accept = accept
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[PendingChange] = deque()
        self._busy = False
        self._blocked_by: Unavailable | None = None  # why a patient change waits for the database

    def submit(self, plan: Plan, patient: bool) -> asyncio.Future[CommittedChange]:
        """Add a change to the queue. `plan` is called when all changes before it are stored."""
        pending = PendingChange(plan, patient, self._loop.create_future())
        if not patient and (refusal := self._refusal()):
            pending.fail(refusal)
        else:
            self._waiting.append(pending)
            self._start_next()
        return pending.future

    def _start_next(self) -> None:
        """Plan waiting changes in order until one is being stored; refused and empty ones end at once."""
        while self._waiting and not self._busy:
            pending = self._waiting.popleft()
            try:
                append = pending.plan()
            except Exception as error:  # noqa: BLE001 (a refusal; it belongs to the caller)
                pending.fail(error)
                continue
            if append.empty:
                pending.succeed(CommittedChange((), (), append.snapshot))
            else:
                self._busy = True
                self._commit(pending, append)

    def _commit(self, pending: PendingChange, append: Append) -> None:
        """Give a planned change to the store."""
        try:
            stored = self._store.commit(append, pending.patient)
        except Exception as error:  # noqa: BLE001 (handed to the caller of the change)
            self._finish(pending, error)
        else:
            stored.add_done_callback(lambda future: self._on_stored(pending, append, future))

    def _on_stored(self, pending: PendingChange, append: Append, stored: asyncio.Future[Numbers]) -> None:
        """Publish a stored change; after an error retry it if it is patient, else fail it."""
        error = stored.exception()
        if error is None:
            self._call_accept(append)
            events = [entry.event for entry in append.entries]
            self._finish(pending, CommittedChange(events, stored.result(), append.snapshot))
        elif isinstance(error, Unavailable) and pending.patient:
            self._refuse_waiting(error)
            self._loop.call_later(RETRY_SECONDS, self._commit, pending, append)
        else:
            self._finish(pending, error)

    def _call_accept(self, append: Append) -> None:
        """Call `accept`. If it raises, the caller still succeeds; else it would repeat the stored change."""
        try:
            self._accept(append)
        except Exception as error:  # noqa: BLE001 (reported, so that the next change can start)
            about = {"message": "a stored change could not be acted upon", "exception": error}
            self._loop.call_exception_handler(about)

    def _finish(self, pending: PendingChange, outcome: CommittedChange | BaseException) -> None:
        """Give the caller its result and start the next change."""
        self._busy, self._blocked_by = False, None
        if isinstance(outcome, CommittedChange):
            pending.succeed(outcome)
        else:
            pending.fail(outcome)
        self._start_next()

    def _refusal(self) -> Unavailable | None:
        """Return the error for a change that is not patient, or None.

        Such a change is refused while an earlier change waits for the database.
        """
        if self._blocked_by:
            return _copy_of(self._blocked_by)
        return self._store.refusal if self._busy else None

    def _refuse_waiting(self, error: Unavailable) -> None:
        """Refuse the waiting changes that are not patient."""
        self._blocked_by = error
        waiting, self._waiting = self._waiting, deque()
        for pending in waiting:
            if pending.patient:
                self._waiting.append(pending)
            else:
                pending.fail(_copy_of(error))


def _copy_of(error: Unavailable) -> Unavailable:
    """Return a new exception for another caller: each raise adds a traceback to its exception."""
    return type(error)(str(error))
