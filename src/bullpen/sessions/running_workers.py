"""Start, watch, stop and restart the workers of one session, as its snapshot requires."""

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

RETRY_SECONDS = 0.5  # until a worker is continued that failed because the machine lacked a resource
MAX_RETRY_SECONDS = 5.0  # the pause grows with each failure
MAX_START_ATTEMPTS = 3  # for a worker that cannot start because the machine lacks a resource


class RunningWorkers:
    """The running workers of one session, which calls `reconcile` after every change of its snapshot."""

    def __init__(self, session_log: SessionLog, services: WorkerServices, tasks: BackgroundTasks) -> None:
        self._log = session_log
        self._services = services
        self._tasks = tasks
        self._latest: dict[str, WorkerRun] = {}
        self._run_tasks: dict[str, asyncio.Task[None]] = {}
        self._stops: dict[str, asyncio.Task[None]] = {}

    def __bool__(self) -> bool:
        return bool(self._run_tasks)

    def latest(self, worker: Worker) -> WorkerRun | None:
        """Return the latest run of a worker; None if its type is not supported.

        For a worker that this server did not run, it is a new object that is not started.
        """
        if worker.id not in self._latest and worker.type in KINDS:
            self._latest[worker.id] = KINDS[worker.type](worker, self._log, self._services)
        return self._latest.get(worker.id)

    def close_terminals(self) -> None:
        """Tell the viewers of all terminals that these runs are over."""
        for running in self._latest.values():
            if isinstance(running, TerminalWorker):
                running.mark_replaced()

    def resume(self) -> None:
        """Continue every worker where the previous server process left it."""
        for worker in self._log.snapshot.workers.values():
            if worker.alive or worker.again or self._services.children.get(worker.id, worker.run) is not None:
                self._start(worker)

    def reconcile(self) -> None:
        """Start the workers that the latest snapshot shows as spawning; stop those it shows as terminated."""
        for worker in self._log.snapshot.workers.values():
            if worker.state is WorkerState.SPAWNING:
                running = self._latest.get(worker.id)
                if running is None or running.worker.run != worker.run:
                    self._start(worker)
            elif worker.state is WorkerState.TERMINATED and worker.id in self._run_tasks:
                self._begin_stop(worker.id)

    async def stop(self, worker_ids: Sequence[str] | None = None) -> None:
        """Stop workers whose end is stored, all at once, even if the caller stops waiting."""
        selected = list(self._run_tasks) if worker_ids is None else worker_ids
        stops = [self._begin_stop(each) for each in selected if each in self._run_tasks]
        if stops:
            await asyncio.wait(stops)

    def _start(self, worker: Worker) -> None:
        """Start the task that runs a worker; it replaces the previous run."""
        running = KINDS[worker.type](worker, self._log, self._services)
        previous, self._latest[worker.id] = self._latest.get(worker.id), running
        if isinstance(previous, TerminalWorker):
            previous.mark_replaced()
        task = self._tasks.create_task(self._watch(worker, running), name=f"worker {worker.id}")
        self._run_tasks[worker.id] = task
        task.add_done_callback(
            lambda done: self._run_tasks.pop(worker.id) if self._run_tasks.get(worker.id) is done else None
        )

    async def _watch(self, worker: Worker, running: WorkerRun) -> None:
        """Run a worker to its end, then start it again if it is an agent that crashed.

        If its code raises, record the failure; other workers are not affected.
        """
        try:
            await self._run_with_retries(worker, running)
            self._log_failure(worker)
            if self._log.snapshot.worker(worker.id).again:
                log.info("a crashed agent is started again", worker=worker.id, session=self._log.id)
                await self._log.change(lambda snapshot: self._restart_crashed(snapshot, worker), patient=True)
        except NotFound as error:
            log.info("worker left alone", worker=worker.id, session=self._log.id, reason=str(error))
        except Exception as error:
            if explain(error) is None:
                log.error("worker broke", worker=worker.id, session=self._log.id, exc_info=error)
            if not self._log.closed:
                reason = describe_failure(error)
                await self._log.change(
                    lambda snapshot: _record_failure(snapshot, worker, reason), patient=True
                )
            await running.stop()

    def _log_failure(self, worker: Worker) -> None:
        """Write a line to the server's log if the run of a worker has failed."""
        ended = self._log.snapshot.worker(worker.id)
        if ended.state is WorkerState.FAILED and ended.run == worker.run:
            log.warning(
                f"the {ended.type} failed",
                session=self._log.id,
                worker=ended.id,
                role=ended.role,
                agent=ended.agent_id,
                reason=ended.error,
            )

    async def _run_with_retries(self, worker: Worker, running: WorkerRun) -> None:
        """Run a worker, and continue it, as after a restart of the server, if the machine lacks a resource.

        A program that runs is continued until it works. One that cannot start fails after a few attempts.
        """
        failures = 0
        while True:
            try:
                return await running.run()
            except Exception as error:
                failures += 1
                failure = explain(error)
                if not isinstance(failure, Unavailable):
                    raise
                spawning = self._log.snapshot.worker(worker.id).state is WorkerState.SPAWNING
                if spawning and failures >= MAX_START_ATTEMPTS:
                    raise
                log.warning(
                    "a worker is continued after a failure of the machine",
                    worker=worker.id,
                    reason=str(failure),
                )
            await asyncio.sleep(min(RETRY_SECONDS * failures, MAX_RETRY_SECONDS))

    def _begin_stop(self, worker_id: str) -> asyncio.Task[None]:
        """Return the task that stops a worker; start it if there is none."""
        stopping = self._stops.get(worker_id)
        if stopping is None or stopping.done():
            # Looked up now: before the task runs, this run may have ended and the next one begun.
            ending = self._stop_one(worker_id, self._latest[worker_id], self._run_tasks[worker_id])
            stopping = self._tasks.create_task(ending, name=f"stop {worker_id}")
            self._stops[worker_id] = stopping
            stopping.add_done_callback(lambda _: self._stops.pop(worker_id, None))
        return stopping

    async def _stop_one(self, worker_id: str, running: WorkerRun, run_task: asyncio.Task[None]) -> None:
        """Stop a run and wait for its task."""
        try:
            await running.stop()
        except Exception as error:
            log.error("worker would not stop", session=self._log.id, worker=worker_id, exc_info=error)
        await asyncio.wait([run_task])

    def _restart_crashed(self, snapshot: Snapshot, worker: Worker) -> Change:
        """Restart a crashed agent, unless the session or the worker changed meanwhile."""
        now = snapshot.worker(worker.id)
        if now.run != worker.run or not now.again or snapshot.status is not SessionStatus.ACTIVE:
            return Change()  # restarted, ended or purged meanwhile
        restart = commands.restart_worker(snapshot, worker.id, automatic=True)
        return Change(drafts=self._services.sandbox.with_levels(snapshot, [restart]))


def _record_failure(snapshot: Snapshot, worker: Worker, reason: str) -> Change:
    """Record that a worker failed, unless it ended or was restarted meanwhile."""
    now = snapshot.worker(worker.id)
    if now.run != worker.run or not now.alive:
        return Change()
    fact = WorkerFailed(error=reason)
    if now.type != "agent":
        return Change(drafts=[Draft(fact, now.id, now.role)])
    change = ConversationChange(snapshot, now.id)
    change.fail_run(fact, may_fail_session=False)
    return change.build()
