"""Answers permissions a rule is about; each answer is an event that names its rule (`by: "rule <name>"`)."""

import structlog

from ..domain.errors import NotFound, Unavailable
from ..domain.rules import Rule, find_rule
from ..domain.snapshot import Snapshot
from ..log.log import Change, SessionLog
from ..workers import acp_orders
from ..workers.worker_services import WorkerServices
from .tasks import BackgroundTasks

log = structlog.get_logger()


class AutomaticAnswers:
    """`follow` after every change: what there is to answer follows from what is stored."""

    def __init__(self, session_log: SessionLog, workshop: WorkerServices, tasks: BackgroundTasks) -> None:
        self._log = session_log
        self._workshop = workshop
        self._tasks = tasks
        self._busy: set[str] = set()

    def follow(self) -> None:
        if not self._workshop.rules:
            return
        for permission_id in self._matching(self._log.snapshot).keys() - self._busy:
            self._busy.add(permission_id)
            self._tasks.create_task(self._answer(permission_id), name=f"rule {self._log.id}")

    async def _answer(self, permission_id: str) -> None:
        try:
            await self._log.change(lambda snapshot: self._decide(snapshot, permission_id))
        except (NotFound, Unavailable) as error:
            log.warning("no automatic answer", session=self._log.id, reason=str(error))
        finally:
            self._busy.discard(permission_id)

    def _decide(self, snapshot: Snapshot, permission_id: str) -> Change:
        """On the snapshot of its turn: a person may have answered, a rule may be gone."""
        found = self._matching(snapshot).get(permission_id)
        if found is None:
            return Change()
        rule, option_id = found
        by = f"rule {rule.name}"
        return acp_orders.answer_permission(snapshot, permission_id, option_id, by).change()

    def _matching(self, snapshot: Snapshot) -> dict[str, tuple[Rule, str]]:
        matching = {}
        for each in snapshot.permissions:
            call_id = each.permission.tool_call.get("toolCallId")
            announced = snapshot.conversations[each.worker.id].tools.get(str(call_id))
            found = find_rule(self._workshop.rules, each.worker.agent_id, each.permission, announced)
            if found:
                matching[each.permission.id] = found
        return matching
