"""List the kinds of workers, each with the class that runs it. A new kind is one module and one entry."""

from collections.abc import Callable
from typing import Protocol

from ..domain.snapshot import Worker
from ..log.log import SessionLog
from .acp_agent import AcpAgent
from .command_terminal import CommandTerminal
from .diff import DiffWorker
from .markdown import MarkdownWorker
from .pty_agent import PtyAgent
from .terminal import TerminalWorker
from .web import WebWorker
from .worker_services import WorkerServices


class WorkerRun(Protocol):
    """One run of a worker, as its session uses it."""

    worker: Worker

    async def run(self) -> None:
        """Run the worker; return when its end is recorded in the log."""

    async def stop(self) -> None:
        """End the run. The caller has recorded the end."""


def _terminal(worker: Worker, log: SessionLog, services: WorkerServices) -> TerminalWorker:
    """Return a run of a terminal, which runs a shell or a command."""
    kind = CommandTerminal if worker.command is not None else TerminalWorker
    return kind(worker, log, services)


def _agent(worker: Worker, log: SessionLog, services: WorkerServices) -> AcpAgent | PtyAgent:
    """Return a run of an agent, which speaks ACP or has only a terminal."""
    kind = PtyAgent if worker.is_typed_to else AcpAgent
    return kind(worker, log, services)


KINDS: dict[str, Callable[[Worker, SessionLog, WorkerServices], WorkerRun]] = {
    "terminal": _terminal,
    "agent": _agent,
    "diff": DiffWorker,
    "markdown": MarkdownWorker,
    "web": WebWorker,
}
