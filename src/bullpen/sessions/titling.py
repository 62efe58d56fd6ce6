"""Titles of messages that wait: by the agent's own headless command where it has one, else by their words."""

import asyncio
import tempfile

import structlog

from .. import clock
from ..domain.agents import fill_placeholders
from ..domain.errors import NotFound, Unavailable
from ..domain.events import Draft
from ..domain.prompts import item_addressee, sendable_items
from ..domain.queue import QueueItem, QueueTitled, default_title, needs_title
from ..domain.snapshot import Snapshot
from ..domain.states import SessionStatus
from ..domain.titles import clean_title, is_short_enough_for_title
from ..git.process import run_process
from ..log.log import Change, SessionLog
from ..workers.worker_services import WorkerServices
from .tasks import BackgroundTasks

log = structlog.get_logger()

SECONDS = 60.0
MOST_BYTES = 64 << 10
MOST_LETTERS = 4000
ASKED = "Give a title of at most eight words to the request below. Answer with the title alone.\n\n"


class QueueTitling:
    """`follow` after every change: what has no title yet follows from what is stored."""

    def __init__(self, session_log: SessionLog, workshop: WorkerServices, tasks: BackgroundTasks) -> None:
        self._log = session_log
        self._workshop = workshop
        self._tasks = tasks
        self._busy: set[tuple[str, str]] = set()
        self._one_at_a_time = asyncio.Lock()

    def at_once(self, snapshot: Snapshot, item: QueueItem) -> list[Draft]:
        """The title that is made together with its message, unless the agent is to be asked."""
        if needs_title(snapshot.queue, item) and not self._command(snapshot, item):
            return [default_title(item)]
        return []

    def follow(self) -> None:
        snapshot = self._log.snapshot
        if snapshot.status is not SessionStatus.ACTIVE or not snapshot.queue.waiting:
            return
        leaving = {item.id for item, _ in sendable_items(snapshot, clock.now_ms())}
        for item in snapshot.queue.items:
            asked = (item.id, item.message)
            if needs_title(snapshot.queue, item) and item.id not in leaving and asked not in self._busy:
                self._busy.add(asked)
                self._tasks.create_task(self._title(item), name=f"title {self._log.id}")

    async def _title(self, item: QueueItem) -> None:
        try:
            async with self._one_at_a_time:
                draft = await self._draft(item)
            await self._log.change(lambda snapshot: _decide(snapshot, item, draft))
        except (NotFound, Unavailable) as error:
            log.warning("no title", session=self._log.id, reason=str(error))
        finally:
            self._busy.discard((item.id, item.message))

    async def _draft(self, item: QueueItem) -> Draft:
        command = self._command(self._log.snapshot, item)
        title = await self._ask(command, item) if command else ""
        return Draft(QueueTitled(id=item.id, title=title)) if title else default_title(item)

    async def _ask(self, command: tuple[str, ...], item: QueueItem) -> str:
        """What the agent calls it, asked where it has nothing to work on; empty when it says nothing."""
        worker = item_addressee(self._log.snapshot, item)
        if worker is None or worker.agent_id is None:
            return ""
        env = self._workshop.agents.environment(self._workshop.agents.get(worker.agent_id))
        argv = fill_placeholders(command, prompt=ASKED + item.message[:MOST_LETTERS])
        try:
            with tempfile.TemporaryDirectory(prefix="bullpen-title-") as nowhere:
                ended = await run_process(argv, env=env, cwd=nowhere, timeout=SECONDS, limit=MOST_BYTES)
        except (TimeoutError, OSError, ValueError) as error:
            reason = str(error) or "it took too long"
            log.info("an agent gave no title", session=self._log.id, reason=reason)
            return ""
        return "" if ended.code else clean_title(ended.output.decode("utf-8", "replace"))

    def _command(self, snapshot: Snapshot, item: QueueItem) -> tuple[str, ...]:
        """How the agent is asked; empty when it cannot be, or a short message needs no other title."""
        worker = item_addressee(snapshot, item)
        if is_short_enough_for_title(item.message) or worker is None or worker.agent_id is None:
            return ()
        try:
            return self._workshop.agents.get(worker.agent_id).title_command
        except NotFound:
            return ()


def _decide(snapshot: Snapshot, item: QueueItem, draft: Draft) -> Change:
    """Unless it was sent, taken back, edited or titled meanwhile."""
    same = [each for each in snapshot.queue.items if (each.id, each.message) == (item.id, item.message)]
    return Change(drafts=[draft] if same and needs_title(snapshot.queue, same[0]) else [])
