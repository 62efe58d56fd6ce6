"""Whether an agent that crashes is started again by itself: decided and stored together with its end."""

from msgspec.structs import replace

from .. import clock
from ..domain.errors import NotFound
from ..domain.events import WorkerFailed
from ..domain.snapshot import Worker
from ..domain.states import WorkerState
from .worker_services import AgentCatalog

MOST_RESTARTS = 3
RESTARTS_WITHIN = 300_000  # milliseconds


def crashed(worker: Worker, fact: WorkerFailed, agents: AgentCatalog) -> WorkerFailed:
    """The same end, with what follows from it: its definition says so, and it is not always crashing."""
    return replace(fact, again=worker.state is WorkerState.ACTIVE and _may_restart(worker, agents))


def _may_restart(worker: Worker, agents: AgentCatalog) -> bool:
    try:
        wanted = agents.get(worker.agent_id or "").restart
    except NotFound:  # the definition was removed meanwhile
        return False
    since = clock.now_ms() - RESTARTS_WITHIN
    return wanted and sum(time > since for time in worker.restarts) < MOST_RESTARTS
