"""Decide whether a crashed agent is restarted automatically; the decision is stored with its failure."""

from msgspec.structs import replace

from .. import clock
from ..domain.errors import NotFound
from ..domain.events import WorkerFailed
from ..domain.snapshot import Worker
from ..domain.states import WorkerState
from .worker_services import AgentCatalog

MAX_RESTARTS = 3
RESTART_WINDOW_MS = 300_000


def plan_restart(worker: Worker, failure: WorkerFailed, agents: AgentCatalog) -> WorkerFailed:
    """Return the failure, marked for a restart if the agent's definition allows it and crashes are rare."""
    return replace(failure, again=worker.state is WorkerState.ACTIVE and _may_restart(worker, agents))


def _may_restart(worker: Worker, agents: AgentCatalog) -> bool:
    """Return whether the agent's definition allows restarts, and few enough have happened lately."""
    try:
        is_allowed = agents.get(worker.agent_id or "").restart
    except NotFound:  # the definition was removed meanwhile
        return False
    since = clock.now_ms() - RESTART_WINDOW_MS
    return is_allowed and sum(time > since for time in worker.restarts) < MAX_RESTARTS
