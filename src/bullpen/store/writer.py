"""The one thread that writes: jobs in turn, those of one kind that wait together in one transaction.

A lone job is written at once. While its commit waits for the disk the next ones gather, so a group
grows with the load and no timer is needed.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from threading import Condition, Thread
from typing import Any

import structlog
from msgspec import Struct

from ..domain.errors import StorageFull, Unavailable
from .room import PROBE_SECONDS, Room
from .transactions import Kind, Transactions

log = structlog.get_logger()

MAX_GROUP = 1000


class Job(Struct):
    kind: Kind
    item: Any
    patient: bool  # tried even when the disk is full
    future: asyncio.Future[Any]


class Writer:
    """Takes jobs from the event loop, hands back what became of them."""

    def __init__(self, transactions: Transactions, room: Room) -> None:
        self.transactions = transactions
        self.room = room
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
                raise Unavailable("the database is being closed")
            self._jobs.append(job)
            self._changed.notify()
        return job.future

    async def close(self) -> None:
        """Writes what waits, then ends."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self.transactions.give_up()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while jobs := self._take():
            try:
                self._settle(jobs)
            except Exception as error:  # there is no other thread: whoever waits would wait for ever
                log.error("a mistake of the writer", exc_info=error)
                self._loop.call_soon_threadsafe(_deliver, [(job, error) for job in jobs])
        self.transactions.connection.close()

    def _take(self) -> list[Job]:
        """The next jobs that belong together; none only when closing."""
        while True:
            with self._changed:
                self._changed.wait_for(self._wanted, PROBE_SECONDS if self.room.full else None)
                if self._jobs or self._closing:
                    return self._pop()
            self._look()

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

    def _drain(self) -> list[Job]:
        with self._changed:
            jobs = list(self._jobs)
            self._jobs.clear()
        return jobs

    def _look(self) -> None:
        """Whatever keeps us from finding out: the next look may."""
        try:
            self.room.look()
        except Exception as error:
            log.error("nobody knows whether there is room", exc_info=error)

    def _settle(self, jobs: list[Job]) -> None:
        self._look()
        outcomes: list[tuple[Job, Any]] = []
        if self.room.full:
            outcomes = [(job, StorageFull(self.room.reason)) for job in jobs if not job.patient]
            jobs = [job for job in jobs if job.patient]
        if jobs:
            outcomes += zip(jobs, self._attempt(jobs), strict=True)
        if blocked := next((outcome for _, outcome in outcomes if _blocked(outcome)), None):
            # What was queued during the wait for the lock has waited, too.
            outcomes += [(job, blocked) for job in self._drain()]
        self._loop.call_soon_threadsafe(_deliver, outcomes)

    def _attempt(self, jobs: list[Job]) -> Sequence[Any]:
        """The results of the jobs, together if that works, else of each by itself: none spoils another."""
        try:
            return self.transactions.run(jobs[0].kind, [job.item for job in jobs])
        except Exception as error:  # noqa: BLE001 (it is handed to whoever awaits the job)
            if _blocked(error):
                return [error] * len(jobs)  # each by itself would wait for the same lock
            if len(jobs) > 1:
                return [result for job in jobs for result in self._attempt([job])]
            if isinstance(error, StorageFull) and self.room.ran_out(str(error)) and jobs[0].patient:
                return self._attempt(jobs)
            return [error]


def _blocked(outcome: object) -> bool:
    """Return whether the database refused a job for a reason that holds for every other job, too."""
    return isinstance(outcome, Unavailable) and not isinstance(outcome, StorageFull)


def _deliver(outcomes: list[tuple[Job, Any]]) -> None:
    for job, outcome in outcomes:
        if job.future.done():
            continue
        if isinstance(outcome, Exception):
            job.future.set_exception(outcome)
        else:
            job.future.set_result(outcome)
