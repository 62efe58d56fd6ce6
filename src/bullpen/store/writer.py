"""The writer thread of the database: runs jobs in order, waiting jobs of one kind in one transaction.

A single job is written at once. While its commit waits for the disk, the next jobs gather, so that a group
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
from .engine import DatabaseUnreachable
from .fence import FenceLost
from .transactions import JobKind, Transactions
from .write_availability import PROBE_SECONDS, WriteAvailability

log = structlog.get_logger()

MAX_GROUP_JOBS = 1000
CLOSING = "the server is stopping; try again in a moment"


class WriteJob(Struct):
    """A database job: an item to write, and the future of its caller."""

    kind: JobKind
    item: Any
    patient: bool  # also tried while the database refuses writes
    future: asyncio.Future[Any]


class DatabaseWriter:
    """A thread that writes database jobs from the event loop and delivers their results to it."""

    def __init__(self, transactions: Transactions, availability: WriteAvailability) -> None:
        self.transactions = transactions
        self.transactions.on_unknown_outcome = self._refuse_waiting
        self.availability = availability
        self._outcome_unknown = False  # the thread waits to find out whether its last commit took place
        self._jobs: deque[WriteJob] = deque()
        self._changed = Condition()
        self._closing = False
        self._loop = asyncio.get_running_loop()
        self.fence_lost: asyncio.Future[FenceLost] = self._loop.create_future()
        self._lost: FenceLost | None = None
        self._thread = Thread(target=self._run, name="bullpen-writer")
        self._thread.start()

    def submit(self, kind: JobKind, item: Any, patient: bool = False) -> asyncio.Future[Any]:
        """Queue a database job and return its future; the job is written even if the caller stops waiting.

        Raise Unavailable while the database is closed.

        While it is unknown whether the last transaction was committed, a `patient` job waits and others fail.
        """
        job = WriteJob(kind, item, patient, self._loop.create_future())
        with self._changed:
            if self._closing:
                raise Unavailable(CLOSING)
            if self._lost or (self._outcome_unknown and not patient):
                job.future.set_exception(self.refusal())
                return job.future
            self._jobs.append(job)
            self._changed.notify()
        return job.future

    def refusal(self) -> Unavailable:
        """Return a new exception that says why the database accepts no writes now."""
        if self._lost:
            return DatabaseUnreachable(str(self._lost))
        refusal = self.availability.refused_by or Unavailable(CLOSING)
        return type(refusal)(str(refusal))

    async def close(self) -> None:
        """Write the waiting jobs, then end the thread and close the connection."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self.transactions.stop_waiting()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        """Write groups of jobs until the writer is closed; runs in the thread."""
        while jobs := self._next_group():
            try:
                self._write_group(jobs)
            except Exception as error:  # the thread must not end, or callers would wait for ever
                log.error("a mistake of the writer", exc_info=error)
                self._loop.call_soon_threadsafe(_deliver, [(job, error) for job in jobs])
        self.transactions.close(release=self._lost is None)

    def _next_group(self) -> list[WriteJob]:
        """Wait for jobs; return the next group of one kind, or none if the writer is closing."""
        while True:
            with self._changed:
                self._changed.wait_for(self._must_act, self._wait_seconds())
                if self._jobs or self._closing:
                    return self._pop_group()
            self._probe()
            self._send_heartbeat()

    def _wait_seconds(self) -> float | None:
        """Return for how many seconds the thread may wait for a job; None if the fence was lost: forever."""
        if self._lost:
            return None
        return PROBE_SECONDS if self.availability.refused_by else self.transactions.seconds_to_heartbeat()

    def _must_act(self) -> bool:
        """Return whether there is a job or the writer is closing."""
        return bool(self._jobs) or self._closing

    def _pop_group(self) -> list[WriteJob]:
        """Take the next jobs that may share a transaction out of the queue."""
        jobs: list[WriteJob] = []
        while self._jobs and len(jobs) < MAX_GROUP_JOBS:
            kind = self._jobs[0].kind
            if jobs and (kind is not jobs[0].kind or not kind.together):
                break
            jobs.append(self._jobs.popleft())
        return jobs

    def _drain(self) -> list[WriteJob]:
        """Take all jobs out of the queue, without waiting for more."""
        with self._changed:
            jobs = list(self._jobs)
            self._jobs.clear()
        return jobs

    def _probe(self) -> None:
        """Find out whether writes succeed again; if that fails, the next call tries again."""
        if self._lost:
            return
        try:
            self.availability.probe_if_due()
        except FenceLost as lost:
            self._stop_writing(lost)
        except Exception as error:
            log.error("cannot find out whether the database takes writes", exc_info=error)

    def _send_heartbeat(self) -> None:
        """Write a heartbeat if it is due; note what its refusal says about the database."""
        if self._lost or self.transactions.seconds_to_heartbeat() > 0:
            return
        try:
            self.transactions.send_heartbeat()
        except FenceLost as lost:
            self._stop_writing(lost)
        except (StorageFull, DatabaseUnreachable) as refusal:
            self.availability.note_refusal(refusal)
        except Unavailable as locked:
            log.warning("no heartbeat", reason=str(locked))

    def _write_group(self, jobs: list[WriteJob]) -> None:
        """Write jobs of one kind and deliver their results to the event loop.

        While the database accepts no writes, fail all but the patient ones.
        """
        self._probe()
        outcomes: list[tuple[WriteJob, Any]] = []
        if self.availability.refused_by:
            refused = [job for job in jobs if self._lost or not job.patient]
            outcomes = [(job, self.refusal()) for job in refused]
            jobs = [] if self._lost else [job for job in jobs if job.patient]
        if jobs:
            outcomes += zip(jobs, self._attempt(jobs), strict=True)
        if blocked := next((outcome for _, outcome in outcomes if _blocks_all(outcome)), None):
            # Jobs that were queued during the wait for the lock have waited for it as well.
            outcomes += [(job, blocked) for job in self._drain()]
        self._loop.call_soon_threadsafe(_deliver, outcomes)

    def _refuse_waiting(self, refusal: Unavailable) -> None:
        """Refuse the jobs that must not wait until the outcome of the last commit is known."""
        self.availability.note_refusal(refusal)
        with self._changed:
            self._outcome_unknown = True
            refused = [job for job in self._jobs if not job.patient]
            self._jobs = deque(job for job in self._jobs if job.patient)
        self._loop.call_soon_threadsafe(_deliver, [(job, self.refusal()) for job in refused])

    def _stop_writing(self, lost: FenceLost) -> None:
        """Refuse all waiting and later jobs, and complete `fence_lost`, because the fence was lost."""
        if self._lost:
            return
        log.error("the server lost its database", reason=str(lost))
        self.availability.refused_by = DatabaseUnreachable(str(lost))
        with self._changed:
            self._lost = lost
            refused, self._jobs = self._jobs, deque()
        self._loop.call_soon_threadsafe(_deliver, [(job, self.refusal()) for job in refused])
        self._loop.call_soon_threadsafe(self.fence_lost.set_result, lost)

    def _attempt(self, jobs: list[WriteJob]) -> Sequence[Any]:
        """Return the results of the jobs, written together if that works, else each by itself."""
        try:
            return self.transactions.run(jobs[0].kind, [job.item for job in jobs])
        except FenceLost as lost:
            self._stop_writing(lost)
            return [self.refusal() for _ in jobs]
        except Exception as error:  # noqa: BLE001 (handed to the callers of the jobs)
            if isinstance(error, DatabaseUnreachable):
                self.availability.note_refusal(error)
            if _blocks_all(error):
                return [error] * len(jobs)  # each by itself would wait for the same lock or server
            if len(jobs) > 1:
                return [result for job in jobs for result in self._attempt([job])]
            if isinstance(error, StorageFull) and self.availability.note_refusal(error) and jobs[0].patient:
                return self._attempt(jobs)
            return [error]
        finally:
            self._outcome_unknown = False


def _blocks_all(outcome: object) -> bool:
    """Return whether the database refused a job for a reason that also holds for all other jobs."""
    return isinstance(outcome, Unavailable) and not isinstance(outcome, StorageFull)


def _deliver(outcomes: list[tuple[WriteJob, Any]]) -> None:
    """Set the results of jobs whose callers still wait; runs in the event loop."""
    for job, outcome in outcomes:
        if job.future.done():
            continue
        if isinstance(outcome, Exception):
            job.future.set_exception(outcome)
        else:
            job.future.set_result(outcome)
