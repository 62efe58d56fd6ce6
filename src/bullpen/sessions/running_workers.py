"""The workers of one session that run: started, watched, ended, and sometimes started again."""

import asyncio
from collections.abc import Sequence

import structlog

from ..domain import commands
from ..domain.errors import NotFound, Unavailable
from ..domain.events import Draft, WorkerFailed
from ..domain.failures import describe_failure, explain
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import SessionStatus, WorkerState
from ..log.log import Change, SessionLog
from ..workers.conversation_change import ConversationChange
from ..workers.kinds import KINDS, WorkerRun
from ..workers.terminal import TerminalWorker
from ..workers.worker_services import WorkerServices
from .tasks import BackgroundTasks

log = structlog.get_logger()

TRY_AGAIN = 0.5  # seconds until a worker that failed for want of resources is taken up again
LONGEST_PAUSE = 5.0  # seconds; the pause grows with each failure
MOST_STARTS = 3  # tries to start a worker for which there are no resources


class RunningWorkers:
    """What runs follows from what is stored: `follow` after every change."""

    def __init__(self, session_log: SessionLog, workshop: WorkerServices, tasks: BackgroundTasks) -> None:
        self._log = session_log
        self._workshop = workshop
        self._tasks = tasks
        self._latest: dict[str, WorkerRun] = {}
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._stops: dict[str, asyncio.Task[None]] = {}

    def __bool__(self) -> bool:
        return bool(self._lives)

    def latest(self, worker: Worker) -> WorkerRun | None:
        """The latest run of a worker, living or not."""
        if worker.id not in self._latest and worker.type in KINDS:
            self._latest[worker.id] = KINDS[worker.type](worker, self._log, self._workshop)
        return self._latest.get(worker.id)

    def leave_terminals(self) -> None:
        """Who looks at one moves on."""
        for running in self._latest.values():
            if isinstance(running, TerminalWorker):
                running.replace()

    def resume(self) -> None:
        """Takes up every worker where the last server left it."""
        for worker in self._log.snapshot.workers.values():
            if worker.alive or worker.again or self._workshop.children.get(worker.id, worker.run) is not None:
                self._run(worker)

    def follow(self) -> None:
        """Starts what is to be started and ends what is to be ended, by the latest snapshot."""
        for worker in self._log.snapshot.workers.values():
            if worker.state is WorkerState.SPAWNING:
                running = self._latest.get(worker.id)
                if running is None or running.worker.run != worker.run:
                    self._run(worker)
            elif worker.state is WorkerState.TERMINATED and worker.id in self._lives:
                self._begin_stop(worker.id)

    async def stop(self, worker_ids: Sequence[str] | None = None) -> None:
        """Ends processes whose end is stored, all at once, whoever stops waiting."""
        wanted = list(self._lives) if worker_ids is None else worker_ids
        stops = [self._begin_stop(each) for each in wanted if each in self._lives]
        if stops:
            await asyncio.wait(stops)

    def _run(self, worker: Worker) -> None:
        running = KINDS[worker.type](worker, self._log, self._workshop)
        before, self._latest[worker.id] = self._latest.get(worker.id), running
        if isinstance(before, TerminalWorker):
            before.replace()
        task = self._tasks.create_task(self._watch(worker, running), name=f"worker {worker.id}")
        self._lives[worker.id] = task
        task.add_done_callback(
            lambda done: self._lives.pop(worker.id) if self._lives.get(worker.id) is done else None
        )

    async def _watch(self, worker: Worker, running: WorkerRun) -> None:
        """Run a worker to its end. If our code fails, the session and its other workers go on."""
        try:
            await self._live(worker, running)
            if self._log.snapshot.worker(worker.id).again:
                log.info("a crashed agent is started again", worker=worker.id, session=self._log.id)
                await self._log.change(lambda snapshot: _again(snapshot, worker), patient=True)
        except NotFound as error:
            log.info("worker left alone", worker=worker.id, session=self._log.id, reason=str(error))
        except Exception as error:
            if explain(error) is None:
                log.error("worker broke", worker=worker.id, session=self._log.id, exc_info=error)
            if not self._log.closed:
                reason = describe_failure(error)
                await self._log.change(lambda snapshot: _broken(snapshot, worker, reason), patient=True)
            await running.stop()

    async def _live(self, worker: Worker, running: WorkerRun) -> None:
        """Run a worker; take it up again, as after a restart of the server, when the machine fails under it.

        A program that runs is never given up for want of a descriptor. One that does not start is, soon.
        """
        failures = 0
        while True:
            try:
                return await running.live()
            except Exception as error:
                failures += 1
                failure = explain(error)
                if not isinstance(failure, Unavailable):
                    raise
                spawning = self._log.snapshot.worker(worker.id).state is WorkerState.SPAWNING
                if spawning and failures >= MOST_STARTS:
                    raise
                log.warning("a worker is taken up again", worker=worker.id, reason=str(failure))
            await asyncio.sleep(min(TRY_AGAIN * failures, LONGEST_PAUSE))

    def _begin_stop(self, worker_id: str) -> asyncio.Task[None]:
        stopping = self._stops.get(worker_id)
        if stopping is None or stopping.done():
            # Of now: a life may be over, and another begun, before the task has its turn.
            ending = self._stop_one(worker_id, self._latest[worker_id], self._lives[worker_id])
            stopping = self._tasks.create_task(ending, name=f"stop {worker_id}")
            self._stops[worker_id] = stopping
            stopping.add_done_callback(lambda _: self._stops.pop(worker_id, None))
        return stopping

    async def _stop_one(self, worker_id: str, running: WorkerRun, life: asyncio.Task[None]) -> None:
        try:
            await running.stop()
        except Exception as error:
            log.error("worker would not stop", session=self._log.id, worker=worker_id, exc_info=error)
        await asyncio.wait([life])


def _broken(snapshot: Snapshot, worker: Worker, reason: str) -> Change:
    now = snapshot.worker(worker.id)
    if now.run != worker.run or not now.alive:
        return Change()
    fact = WorkerFailed(error=reason)
    if now.type != "agent":
        return Change(drafts=[Draft(fact, now.id, now.role)])
    exchange = ConversationChange(snapshot, now.id)
    exchange.fail(fact, blames_session=False)
    return exchange.change()


def _again(snapshot: Snapshot, worker: Worker) -> Change:
    now = snapshot.worker(worker.id)
    if now.run != worker.run or not now.again or snapshot.status is not SessionStatus.ACTIVE:
        return Change()  # somebody was faster
    return Change(drafts=[commands.restart_worker(snapshot, worker.id, automatic=True)])
