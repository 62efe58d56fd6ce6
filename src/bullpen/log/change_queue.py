"""One change at a time: planned, stored, then true; the store's answer to one starts the next.

There is no task here. A caller that is cancelled has only stopped waiting; its change goes on.
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
    """A change and its caller. A patient one waits while the database takes no writes; others are refused."""

    plan: Plan
    patient: bool
    future: asyncio.Future[CommittedChange]

    def succeed(self, committed: CommittedChange) -> None:
        if not self.future.done():
            self.future.set_result(committed)

    def fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class ChangeQueue:
    """`accept` is told of each append that has been stored, before its caller is."""

    def __init__(self, store: EventStore, accept: Callable[[Append], None]) -> None:
        self._store = store
        self._accept = accept
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[PendingChange] = deque()
        self._busy = False
        self._stuck: Unavailable | None = None  # why a patient change waits for the database

    def take(self, plan: Plan, patient: bool) -> asyncio.Future[CommittedChange]:
        """Puts a change in line; `plan` is called when nothing before it is under way."""
        turn = PendingChange(plan, patient, self._loop.create_future())
        if not patient and (refusal := self._refusal()):
            turn.fail(refusal)
        else:
            self._waiting.append(turn)
            self._go_on()
        return turn.future

    def _go_on(self) -> None:
        while self._waiting and not self._busy:
            turn = self._waiting.popleft()
            try:
                append = turn.plan()
            except Exception as error:  # noqa: BLE001 (a refusal; it belongs to the caller)
                turn.fail(error)
                continue
            if append.empty:
                turn.succeed(CommittedChange((), (), append.snapshot))
            else:
                self._busy = True
                self._store_it(turn, append)

    def _store_it(self, turn: PendingChange, append: Append) -> None:
        try:
            stored = self._store.commit(append, turn.patient)
        except Exception as error:  # noqa: BLE001 (no caller but the loop: the one who waits is told)
            self._finish(turn, error)
        else:
            stored.add_done_callback(lambda future: self._settle(turn, append, future))

    def _settle(self, turn: PendingChange, append: Append, stored: asyncio.Future[Numbers]) -> None:
        error = stored.exception()
        if error is None:
            self._tell_accepted(append)
            events = [entry.event for entry in append.entries]
            self._finish(turn, CommittedChange(events, stored.result(), append.snapshot))
        elif isinstance(error, Unavailable) and turn.patient:
            self._refuse_the_impatient(error)
            self._loop.call_later(RETRY_SECONDS, self._store_it, turn, append)
        else:
            self._finish(turn, error)

    def _tell_accepted(self, append: Append) -> None:
        """Call `accept`. If it raises, the caller is not told: it would make the stored change again."""
        try:
            self._accept(append)
        except Exception as error:  # noqa: BLE001 (reported; the next change does not wait for ever)
            about = {"message": "a stored change could not be acted upon", "exception": error}
            self._loop.call_exception_handler(about)

    def _finish(self, turn: PendingChange, outcome: CommittedChange | BaseException) -> None:
        self._busy, self._stuck = False, None
        if isinstance(outcome, CommittedChange):
            turn.succeed(outcome)
        else:
            turn.fail(outcome)
        self._go_on()

    def _refusal(self) -> Unavailable | None:
        """Return why a change that cannot wait is refused: the one before it waits for the database."""
        if self._stuck:
            return _same(self._stuck)
        return self._store.refusal if self._busy else None

    def _refuse_the_impatient(self, error: Unavailable) -> None:
        self._stuck = error
        waiting, self._waiting = self._waiting, deque()
        for turn in waiting:
            if turn.patient:
                self._waiting.append(turn)
            else:
                turn.fail(_same(error))


def _same(error: Unavailable) -> Unavailable:
    """Return a new exception for another caller: each raise adds a traceback to its exception."""
    return type(error)(str(error))
