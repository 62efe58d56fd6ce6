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
from .engine import DatabaseUnreachable
from .fence import FenceLost
from .transactions import JobKind, Transactions
from .write_availability import PROBE_SECONDS, WriteAvailability

log = structlog.get_logger()

MAX_GROUP = 1000
CLOSING = "the server is stopping; try again in a moment"


class WriteJob(Struct):
    kind: JobKind
    item: Any
    patient: bool  # tried even when the disk is full or the database was out of reach a moment ago
    future: asyncio.Future[Any]


class DatabaseWriter:
    """Takes jobs from the event loop, hands back what became of them."""

    def __init__(self, transactions: Transactions, room: WriteAvailability) -> None:
        self.transactions = transactions
        self.transactions.on_doubt = self._refuse_waiting
        self.room = room
        self._in_doubt = False  # the thread waits to learn what became of a commit
        self._jobs: deque[WriteJob] = deque()
        self._changed = Condition()
        self._closing = False
        self._loop = asyncio.get_running_loop()
        self.fence_lost: asyncio.Future[FenceLost] = self._loop.create_future()
        self._lost: FenceLost | None = None
        self._thread = Thread(target=self._run, name="bullpen-writer")
        self._thread.start()

    def submit(self, kind: JobKind, item: Any, patient: bool = False) -> asyncio.Future[Any]:
        """Put a job in the queue; it is written even if the caller stops waiting."""
        job = WriteJob(kind, item, patient, self._loop.create_future())
        with self._changed:
            if self._closing:
                raise Unavailable(CLOSING)
            if self._lost or (self._in_doubt and not patient):
                job.future.set_exception(self.refuse())
                return job.future
            self._jobs.append(job)
            self._changed.notify()
        return job.future

    def refuse(self) -> Unavailable:
        """Return a new exception that says why the database takes no writes now."""
        if self._lost:
            return DatabaseUnreachable(str(self._lost))
        refusal = self.room.closed_by or Unavailable(CLOSING)
        return type(refusal)(str(refusal))

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
        self.transactions.close(release=self._lost is None)

    def _take(self) -> list[WriteJob]:
        """The next jobs that belong together; none only when closing."""
        while True:
            with self._changed:
                self._changed.wait_for(self._wanted, self._patience())
                if self._jobs or self._closing:
                    return self._pop()
            self._look()
            self._beat()

    def _patience(self) -> float | None:
        """Return how long the thread may wait for a job, in seconds."""
        if self._lost:
            return None
        return PROBE_SECONDS if self.room.closed_by else self.transactions.beat_due_in()

    def _wanted(self) -> bool:
        return bool(self._jobs) or self._closing

    def _pop(self) -> list[WriteJob]:
        jobs: list[WriteJob] = []
        while self._jobs and len(jobs) < MAX_GROUP:
            kind = self._jobs[0].kind
            if jobs and (kind is not jobs[0].kind or not kind.together):
                break
            jobs.append(self._jobs.popleft())
        return jobs

    def _drain(self) -> list[WriteJob]:
        with self._changed:
            jobs = list(self._jobs)
            self._jobs.clear()
        return jobs

    def _look(self) -> None:
        """Find out whether writes succeed again. If that itself fails, the next call tries again."""
        if self._lost:
            return
        try:
            self.room.look()
        except FenceLost as lost:
            self._stop_writing(lost)
        except Exception as error:
            log.error("cannot find out whether the database takes writes", exc_info=error)

    def _beat(self) -> None:
        if self._lost or self.transactions.beat_due_in() > 0:
            return
        try:
            self.transactions.beat()
        except FenceLost as lost:
            self._stop_writing(lost)
        except (StorageFull, DatabaseUnreachable) as refusal:
            self.room.close(refusal)
        except Unavailable as locked:
            log.warning("no heartbeat", reason=str(locked))

    def _settle(self, jobs: list[WriteJob]) -> None:
        self._look()
        outcomes: list[tuple[WriteJob, Any]] = []
        if self.room.closed_by:
            refused = [job for job in jobs if self._lost or not job.patient]
            outcomes = [(job, self.refuse()) for job in refused]
            jobs = [] if self._lost else [job for job in jobs if job.patient]
        if jobs:
            outcomes += zip(jobs, self._attempt(jobs), strict=True)
        if blocked := next((outcome for _, outcome in outcomes if _blocked(outcome)), None):
            # What was queued during the wait for the lock has waited, too.
            outcomes += [(job, blocked) for job in self._drain()]
        self._loop.call_soon_threadsafe(_deliver, outcomes)

    def _refuse_waiting(self, refusal: Unavailable) -> None:
        """Refuse the jobs that must not wait until the server knows what became of its last commit."""
        self.room.close(refusal)
        with self._changed:
            self._in_doubt = True
            refused = [job for job in self._jobs if not job.patient]
            self._jobs = deque(job for job in self._jobs if job.patient)
        self._loop.call_soon_threadsafe(_deliver, [(job, self.refuse()) for job in refused])

    def _stop_writing(self, lost: FenceLost) -> None:
        """Refuse every job from now on."""
        if self._lost:
            return
        log.error("the server lost its database", reason=str(lost))
        self.room.closed_by = DatabaseUnreachable(str(lost))
        with self._changed:
            self._lost = lost
            refused, self._jobs = self._jobs, deque()
        self._loop.call_soon_threadsafe(_deliver, [(job, self.refuse()) for job in refused])
        self._loop.call_soon_threadsafe(self.fence_lost.set_result, lost)

    def _attempt(self, jobs: list[WriteJob]) -> Sequence[Any]:
        """Return the results of the jobs, written together if that works, else each by itself."""
        try:
            return self.transactions.run(jobs[0].kind, [job.item for job in jobs])
        except FenceLost as lost:
            self._stop_writing(lost)
            return [self.refuse() for _ in jobs]
        except Exception as error:  # noqa: BLE001 (it is handed to whoever awaits the job)
            if isinstance(error, DatabaseUnreachable):
                self.room.close(error)
            if _blocked(error):
                return [error] * len(jobs)  # each by itself would wait for the same lock or server
            if len(jobs) > 1:
                return [result for job in jobs for result in self._attempt([job])]
            if isinstance(error, StorageFull) and self.room.close(error) and jobs[0].patient:
                return self._attempt(jobs)
            return [error]
        finally:
            self._in_doubt = False


def _blocked(outcome: object) -> bool:
    """Return whether the database refused a job for a reason that holds for every other job, too."""
    return isinstance(outcome, Unavailable) and not isinstance(outcome, StorageFull)


def _deliver(outcomes: list[tuple[WriteJob, Any]]) -> None:
    for job, outcome in outcomes:
        if job.future.done():
            continue
        if isinstance(outcome, Exception):
            job.future.set_exception(outcome)
        else:
            job.future.set_result(outcome)
