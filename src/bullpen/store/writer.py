"""The one thread that writes: jobs in turn, those of one kind that wait together in one transaction.

A lone job is written at once. While its commit waits for the disk the next ones gather, so a group
grows with the load and no timer is needed.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from threading import Condition, Thread
from typing import Any, Protocol

from msgspec import Struct
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from .. import clock
from ..domain.errors import StorageFull
from .ballast import Ballast
from .engine import passes
from .receipts import take_receipt, was_committed

MAX_GROUP = 1000
PROBE_SECONDS = 0.5


class Kind(Protocol):
    """What the items of some jobs come to in the database."""

    together: bool

    def write(self, connection: Connection, items: Sequence[Any], /) -> Sequence[Any]:
        """One result for each item; a result that is an exception belongs to its item alone."""


class Job(Struct):
    kind: Kind
    item: Any
    patient: bool  # tried even when the disk is full
    future: asyncio.Future[Any]


class Writer:
    """Owns the writing connection. `full`: from a write the disk refused until there is room again."""

    def __init__(self, engine: Engine, probe: Kind, ballast: Ballast | None) -> None:
        self.full = False
        self.transactions = 0  # that were committed
        self.refusals = 0  # by the disk or the server
        self.connection = engine.connect()
        self._probe = probe
        self._ballast = ballast
        self._next_probe = 0.0
        self._jobs: deque[Job] = deque()
        self._changed = Condition()
        self._closing = False
        self._loop = asyncio.get_running_loop()
        self._thread = Thread(target=self._run, name="bullpen-writer")
        self._thread.start()

    def submit(self, kind: Kind, item: Any, patient: bool = False) -> asyncio.Future[Any]:
        """Puts a job in the queue; what becomes of it does not depend on anybody awaiting it."""
        job = Job(kind, item, patient, self._loop.create_future())
        with self._changed:
            if self._closing:
                raise StorageFull("the database is being closed")
            self._jobs.append(job)
            self._changed.notify()
        return job.future

    async def close(self) -> None:
        """Writes what waits, then ends."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while jobs := self._take():
            self._settle(jobs)
        self.connection.close()

    def _take(self) -> list[Job]:
        """The next jobs that belong together; none only when closing."""
        while True:
            with self._changed:
                self._changed.wait_for(self._wanted, PROBE_SECONDS if self.full else None)
                if self._jobs or self._closing:
                    return self._pop()
            self._look_for_room()

    def _wanted(self) -> bool:
        return bool(self._jobs) or self._closing

    def _pop(self) -> list[Job]:
        jobs: list[Job] = []
        while self._jobs and len(jobs) < MAX_GROUP:
            kind = self._jobs[0].kind
            if jobs and (kind is not jobs[0].kind or not kind.together):
                break
            jobs.append(self._jobs.popleft())
        return jobs

    def _settle(self, jobs: list[Job]) -> None:
        self._look_for_room()
        outcomes: list[tuple[Job, Any]] = []
        if self.full:
            refusal = StorageFull("the disk is full; free some space and try again")
            outcomes = [(job, refusal) for job in jobs if not job.patient]
            jobs = [job for job in jobs if job.patient]
        if jobs:
            outcomes += zip(jobs, self._attempt(jobs), strict=True)
        self._loop.call_soon_threadsafe(_deliver, outcomes)

    def _attempt(self, jobs: list[Job]) -> Sequence[Any]:
        """The results of the jobs, together if that works, else of each by itself: none spoils another."""
        try:
            return self._transact(jobs[0].kind, [job.item for job in jobs])
        except Exception as error:  # noqa: BLE001 (it is handed to whoever awaits the job)
            if len(jobs) > 1:
                return [result for job in jobs for result in self._attempt([job])]
            if isinstance(error, StorageFull) and self._make_room() and jobs[0].patient:
                return self._attempt(jobs)
            return [error]

    def _transact(self, kind: Kind, items: Sequence[Any]) -> Sequence[Any]:
        receipt = None
        try:
            with self.connection.begin():
                results = kind.write(self.connection, items)
                receipt = take_receipt(self.connection)
        except DBAPIError as error:
            if not passes(error):
                raise
            if receipt is None or not self._redeem(receipt):
                self.refusals += 1
                raise StorageFull(f"the database cannot be written now: {error.orig}") from error
        self.transactions += 1
        return results

    def _redeem(self, receipt: str) -> bool:
        """Learns what became of a commit; nothing else may be written before that is known."""
        self.full = True
        while True:
            try:
                with self.connection.begin():
                    outcome = was_committed(self.connection, receipt)
            except DBAPIError as error:
                if not passes(error):
                    raise
                outcome = None
            if outcome is not None:
                return outcome
            with self._changed:
                if self._changed.wait_for(lambda: self._closing, PROBE_SECONDS):
                    return False

    def _make_room(self) -> bool:
        """From now on the disk counts as full; True when the reserve has just been given back."""
        first, self.full = not self.full, True
        self._next_probe = clock.monotonic() + PROBE_SECONDS
        if self._ballast:
            self._ballast.drop()
        return first and self._ballast is not None

    def _look_for_room(self) -> None:
        if not self.full or clock.monotonic() < self._next_probe:
            return
        self._next_probe = clock.monotonic() + PROBE_SECONDS
        if self._ballast and not self._ballast.restore():
            return
        try:
            self._transact(self._probe, [None])
        except (StorageFull, DBAPIError):
            return  # it is looked for again soon
        self.full = False


def _deliver(outcomes: list[tuple[Job, Any]]) -> None:
    for job, outcome in outcomes:
        if job.future.done():
            continue
        if isinstance(outcome, Exception):
            job.future.set_exception(outcome)
        else:
            job.future.set_result(outcome)
