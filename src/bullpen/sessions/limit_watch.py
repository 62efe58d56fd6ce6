"""End the sandboxed runs that use more memory or processes than their session may, and record why."""

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from ..domain.limits import Excess, RunUsage, describe_excess, find_offenders
from ..intervals import intervals
from ..sandbox.process_tree import may_exceed, measure_trees, read_processes
from ..workers.children import ChildHandle
from .session import Session
from .sessions import Sessions

log = structlog.get_logger()


class LimitWatch:
    """Looks at the sandboxed runs of all sessions, again and again.

    The kernel limits those that have a control group. For the others, it looks at their processes, but only
    while the whole machine uses more than one session may use.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._limits = sessions.services.children.limits

    async def run(self) -> None:
        """Check the runs until cancelled."""
        while True:
            await asyncio.sleep(intervals().limit_check)
            runs = {session.id: children for session, children in limited_runs(self._sessions)}
            if not runs and not self._limits.has_ended:
                continue
            for child, excess in (await asyncio.to_thread(self._find, runs)).items():
                await end_run(child, describe_excess(self._limits.values, excess))

    def _find(self, runs: Mapping[str, Sequence[ChildHandle]]) -> dict[ChildHandle, Excess]:
        """Return the runs to end. It reads files of the kernel, so call it in a thread."""
        self._limits.remove_ended()
        usages = {session: self._usages(children) for session, children in runs.items()}
        without_group = {
            session: {child: child.pid for child in children if not usages[session][child].processes}
            for session, children in runs.items()
        }
        if any(without_group.values()) and may_exceed(self._limits.values):
            processes = read_processes()
            for session, roots in without_group.items():
                usages[session] |= measure_trees(roots, processes, self._limits.values)
        found: dict[ChildHandle, Excess] = {}
        for of_session in usages.values():
            found |= find_offenders(self._limits.values, of_session)
        return found

    def _usages(self, children: Sequence[ChildHandle]) -> dict[ChildHandle, RunUsage]:
        """Return what runs use according to their groups; nothing for those outside of one."""
        return {child: child.group.usage() if child.group else RunUsage() for child in children}


def limited_runs(sessions: Sessions) -> list[tuple[Session, list[ChildHandle]]]:
    """Return each session that has sandboxed runs, with these; without those that are being ended."""
    found = []
    for session in sessions.list_open():
        runs = [
            child
            for worker in session.snapshot.workers.values()
            if worker.sandbox not in (None, "open")
            and (child := sessions.services.children.get(worker.id, worker.run)) is not None
            and child.pid
            and child.excess is None
            and not child.ended.done()
        ]
        if runs:
            found.append((session, runs))
    return found


async def end_run(child: ChildHandle, reason: str) -> None:
    """End a run, whose worker then records the reason."""
    log.warning("a run used too much", worker=child.worker_id, run=child.run, reason=reason)
    await child.end_for_excess(reason)
