"""The kinds of worker there are: a new kind is one file and one entry here (R71)."""

from collections.abc import Callable
from typing import Protocol

from ..domain.snapshot import Worker
from ..log.log import SessionLog
from .acp_agent import AcpAgent
from .acp_terminals import AgentTerminal
from .diff import DiffWorker
from .markdown import MarkdownWorker
from .pty_agent import PtyAgent
from .terminal import TerminalWorker
from .worker_services import WorkerServices


class WorkerRun(Protocol):
    """One run of a worker, as its session sees it."""

    worker: Worker

    async def live(self) -> None:
        """The whole run; returns when its end is in the log."""

    async def stop(self) -> None:
        """Ends it; its end has been decided before."""


def _terminal(worker: Worker, log: SessionLog, workshop: WorkerServices) -> TerminalWorker:
    kind = AgentTerminal if worker.command is not None else TerminalWorker
    return kind(worker, log, workshop)


def _agent(worker: Worker, log: SessionLog, workshop: WorkerServices) -> AcpAgent | PtyAgent:
    kind = PtyAgent if worker.is_typed_to else AcpAgent
    return kind(worker, log, workshop)


KINDS: dict[str, Callable[[Worker, SessionLog, WorkerServices], WorkerRun]] = {
    "terminal": _terminal,
    "agent": _agent,
    "diff": DiffWorker,
    "markdown": MarkdownWorker,
}
