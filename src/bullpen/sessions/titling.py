"""Titles of queued messages: from the title command of the agent if it has one, else from the text."""

import asyncio
import os
import tempfile

import structlog

from .. import clock
from ..domain.agents import fill_placeholders
from ..domain.errors import Conflict, NotFound, Unavailable
from ..domain.events import Draft
from ..domain.prompts import item_addressee, sendable_items
from ..domain.queue import QueueItem, QueueTitled, default_title, needs_title
from ..domain.snapshot import Snapshot
from ..domain.states import SessionStatus
from ..domain.titles import clean_title, is_short_enough_for_title
from ..log.log import Change, SessionLog
from ..processes import run_process
from ..sandbox.command import sandboxed_command
from ..workers.worker_services import WorkerServices
from .tasks import BackgroundTasks

log = structlog.get_logger()

TIMEOUT_SECONDS = 60.0
MAX_OUTPUT_BYTES = 64 << 10
MAX_MESSAGE_CHARACTERS = 4000  # of a message that are given to the command
TITLE_PROMPT = "Give a title of at most eight words to the request below. Answer with the title alone.\n\n"


class QueueTitling:
    """Gives titles to the queued messages of one session, which calls `reconcile` after every change."""

    def __init__(self, session_log: SessionLog, services: WorkerServices, tasks: BackgroundTasks) -> None:
        self._log = session_log
        self._services = services
        self._tasks = tasks
        self._busy: set[tuple[str, str]] = set()
        self._command_lock = asyncio.Lock()

    def default_title_drafts(self, snapshot: Snapshot, item: QueueItem) -> list[Draft]:
        """Return the title event to store with a new message; none if the title command has to run first."""
        if needs_title(snapshot.queue, item) and not self._command(snapshot, item):
            return [default_title(item)]
        return []

    def reconcile(self) -> None:
        """Start to make a title for each queued message without one, except those about to be sent."""
        snapshot = self._log.snapshot
        if snapshot.status is not SessionStatus.ACTIVE or not snapshot.queue.waiting:
            return
        being_sent = {item.id for item, _ in sendable_items(snapshot, clock.now_ms())}
        for item in snapshot.queue.items:
            key = (item.id, item.message)
            if needs_title(snapshot.queue, item) and item.id not in being_sent and key not in self._busy:
                self._busy.add(key)
                self._tasks.create_task(self._title(item), name=f"title {self._log.id}")

    async def _title(self, item: QueueItem) -> None:
        """Make a title for a message, one title command at a time, and store it."""
        try:
            async with self._command_lock:
                draft = await self._make_title(item)
            await self._log.change(lambda snapshot: _set_title(snapshot, item, draft))
        except (NotFound, Unavailable) as error:
            log.warning("a message got no title", session=self._log.id, reason=str(error))
        finally:
            self._busy.discard((item.id, item.message))

    async def _make_title(self, item: QueueItem) -> Draft:
        """Return the title event, from the title command or from the text."""
        command = self._command(self._log.snapshot, item)
        title = await self._run_title_command(command, item) if command else ""
        return Draft(QueueTitled(id=item.id, title=title)) if title else default_title(item)

    async def _run_title_command(self, command: tuple[str, ...], item: QueueItem) -> str:
        """Run the title command in an empty directory; return its title, or an empty string."""
        worker = item_addressee(self._log.snapshot, item)
        if worker is None or worker.agent_id is None:
            return ""
        definition = self._services.agents.get(worker.agent_id)
        env, sandbox = self._services.agents.environment(definition), self._services.sandbox
        level = sandbox.level(self._log.snapshot, worker)
        argv = fill_placeholders(command, prompt=TITLE_PROMPT + item.message[:MAX_MESSAGE_CHARACTERS])
        try:
            with tempfile.TemporaryDirectory(prefix="bullpen-title-") as empty_directory:
                directory = await asyncio.to_thread(os.path.realpath, empty_directory)
                profile = sandbox.planner.plan(level, self._log.id, directory, env, definition)
                inside = await sandboxed_command(profile, argv, env, directory)
                async with self._services.children.limits.limited(profile, inside.argv) as limited:
                    ended = await run_process(
                        limited,
                        env=inside.env,
                        cwd=directory,
                        timeout=TIMEOUT_SECONDS,
                        limit=MAX_OUTPUT_BYTES,
                    )
        except (TimeoutError, OSError, ValueError, Conflict) as error:
            reason = str(error) or "it took too long"
            log.info("an agent gave no title", session=self._log.id, reason=reason)
            return ""
        return "" if ended.code else clean_title(ended.output.decode("utf-8", "replace"))

    def _command(self, snapshot: Snapshot, item: QueueItem) -> tuple[str, ...]:
        """Return the title command of the addressed agent; empty if none is needed or defined."""
        worker = item_addressee(snapshot, item)
        if is_short_enough_for_title(item.message) or worker is None or worker.agent_id is None:
            return ()
        try:
            return self._services.agents.get(worker.agent_id).title_command
        except NotFound:
            return ()


def _set_title(snapshot: Snapshot, item: QueueItem, draft: Draft) -> Change:
    """Add the title, unless the message was sent, removed, edited or titled meanwhile."""
    same = [each for each in snapshot.queue.items if (each.id, each.message) == (item.id, item.message)]
    return Change(drafts=[draft] if same and needs_title(snapshot.queue, same[0]) else [])
