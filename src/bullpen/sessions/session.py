"""One open session: its log, its running workers, and the orders it takes."""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from ..domain import commands
from ..domain.commands import AddWorker
from ..domain.errors import Conflict, Invalid
from ..domain.events import Draft, WorkerFailed
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import Status
from ..log.log import Answer, Change, Committed, SessionLog
from ..workers.kinds import KINDS, Running
from ..workers.terminal import Terminal
from ..workers.workshop import Workshop

log = structlog.get_logger()


class Session:
    """Takes one order at a time: decided on the snapshot, stored, then done."""

    def __init__(self, session_log: SessionLog, workshop: Workshop, tasks: asyncio.TaskGroup) -> None:
        self.log = session_log
        self._workshop = workshop
        self._tasks = tasks
        self._latest: dict[str, Running] = {}
        self._lives: dict[str, asyncio.Task[None]] = {}

    @property
    def id(self) -> str:
        return self.log.id

    @property
    def snapshot(self) -> Snapshot:
        return self.log.snapshot

    @property
    def busy(self) -> bool:
        """Whether some worker still runs, so that the session must stay in memory."""
        return bool(self._lives)

    async def add_worker(self, order: AddWorker, answer: Answer | None = None) -> Worker:
        """Starts a worker; returns it as it is once its spawning is stored."""
        if order.type not in KINDS:
            raise Invalid(f"this server cannot run a worker of type {order.type}")
        return await self._spawn(lambda snapshot: commands.add_worker(snapshot, order), answer)

    async def restart_worker(self, worker_id: str, answer: Answer | None = None) -> Worker:
        return await self._spawn(lambda snapshot: commands.restart_worker(snapshot, worker_id), answer)

    async def end_worker(self, worker_id: str, reason: str) -> Worker:
        """Ends a worker and waits until it is gone. Ending it twice is fine."""
        await self._change(lambda snapshot: commands.end_worker(snapshot, worker_id, reason))
        await self._stop([worker_id])
        return self.snapshot.worker(worker_id)

    async def end(self, status: Status, reason: str, answer: Answer | None = None) -> None:
        """Ends the session and all its workers, side by side. Worktrees stay."""
        await self._change(lambda snapshot: commands.end_session(snapshot, status, reason), answer)
        await self._stop(list(self._lives))

    async def edit(self, title: str | None, on_last_disconnect: str | None) -> None:
        await self._change(lambda snapshot: commands.change_session(snapshot, title, on_last_disconnect))

    def terminal(self, worker_id: str) -> Terminal:
        """The latest run of a terminal, living or not."""
        worker = self.snapshot.worker(worker_id)
        latest = self._latest.get(worker_id)
        if latest is None and worker.type in KINDS:
            latest = self._latest[worker_id] = KINDS[worker.type](worker, self.log, self._workshop)
        if not isinstance(latest, Terminal):
            raise Conflict(f"the worker in role {worker.role} is a {worker.type}, not a terminal")
        return latest

    def resume(self) -> None:
        """After a start of the server: takes up every worker where it was left."""
        for worker in self.snapshot.workers.values():
            if worker.alive or self._workshop.children.get(worker.id, worker.run) is not None:
                self._run(worker)

    async def _change(
        self, decide: Callable[[Snapshot], Sequence[Draft]], answer: Answer | None = None
    ) -> Committed:
        return await self.log.change(lambda snapshot: Change(drafts=decide(snapshot), answer=answer))

    async def _spawn(self, decide: Callable[[Snapshot], Draft], answer: Answer | None) -> Worker:
        committed = await self._change(lambda snapshot: [decide(snapshot)], answer)
        worker_id = committed.events[0].worker_id
        assert worker_id is not None
        worker = committed.snapshot.worker(worker_id)
        self._run(worker)
        return worker

    def _run(self, worker: Worker) -> None:
        running = KINDS[worker.type](worker, self.log, self._workshop)
        before, self._latest[worker.id] = self._latest.get(worker.id), running
        if isinstance(before, Terminal):
            before.replace()
        task = self._tasks.create_task(self._watch(worker, running), name=f"worker {worker.id}")
        self._lives[worker.id] = task
        task.add_done_callback(
            lambda done: self._lives.pop(worker.id) if self._lives.get(worker.id) is done else None
        )

    async def _watch(self, worker: Worker, running: Running) -> None:
        """A worker's fault is its own: it fails, the session and the house go on."""
        try:
            await running.live()
        except Exception as error:
            log.error("worker broke", worker=worker.id, session=self.id, exc_info=error)
            await self.log.change(lambda snapshot: _broken(snapshot, worker), patient=True)

    async def _stop(self, worker_ids: Sequence[str]) -> None:
        """Ends the processes of workers whose end is stored, all at once, whoever stops waiting."""
        stopping = self._tasks.create_task(self._stop_all(worker_ids), name=f"stop {self.id}")
        await asyncio.shield(stopping)

    async def _stop_all(self, worker_ids: Sequence[str]) -> None:
        lives = [self._lives[each] for each in worker_ids if each in self._lives]
        results = await asyncio.gather(
            *(self._latest[each].stop() for each in worker_ids if each in self._latest),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, Exception):
                log.error("worker would not stop", session=self.id, exc_info=result)
        if lives:
            await asyncio.wait(lives)


def _broken(snapshot: Snapshot, worker: Worker) -> Change:
    now = snapshot.worker(worker.id)
    if now.run != worker.run or not now.alive:
        return Change()
    return Change(drafts=[Draft(WorkerFailed(error="internal error"), now.id, now.role)])
