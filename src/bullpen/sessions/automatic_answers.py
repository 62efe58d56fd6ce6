"""Answer permission requests that match a rule; the event of the answer names it (`by: "rule <name>"`)."""

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
    """Answers the permission requests of one session. The session calls `reconcile` after every change."""

    def __init__(self, session_log: SessionLog, services: WorkerServices, tasks: BackgroundTasks) -> None:
        self._log = session_log
        self._services = services
        self._tasks = tasks
        self._busy: set[str] = set()

    def reconcile(self) -> None:
        """Start to answer each open permission request that a rule matches."""
        if not self._services.rules:
            return
        for permission_id in self._matching(self._log.snapshot).keys() - self._busy:
            self._busy.add(permission_id)
            self._tasks.create_task(self._answer(permission_id), name=f"rule {self._log.id}")

    async def _answer(self, permission_id: str) -> None:
        """Store the answer of the matching rule to a permission request."""
        try:
            await self._log.change(lambda snapshot: self._decide(snapshot, permission_id))
        except (NotFound, Unavailable) as error:
            log.warning(
                "a permission request could not be answered by a rule",
                session=self._log.id,
                reason=str(error),
            )
        finally:
            self._busy.discard(permission_id)

    def _decide(self, snapshot: Snapshot, permission_id: str) -> Change:
        """Decide again on the current snapshot: the user may have answered, or the rule may be removed."""
        found = self._matching(snapshot).get(permission_id)
        if found is None:
            return Change()
        rule, option_id = found
        by = f"rule {rule.name}"
        return acp_orders.answer_permission(snapshot, permission_id, option_id, by).build()

    def _matching(self, snapshot: Snapshot) -> dict[str, tuple[Rule, str]]:
        """Return the rule and its option for each open permission request that a rule matches."""
        matching = {}
        for each in snapshot.permissions:
            call_id = each.permission.tool_call.get("toolCallId")
            announced = snapshot.conversations[each.worker.id].tools.get(str(call_id))
            found = find_rule(self._services.rules, each.worker.agent_id, each.permission, announced)
            if found:
                matching[each.permission.id] = found
        return matching
