"""Hold the services that all workers of a server share: children, screens, agents, files and settings."""

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping
from typing import Protocol

import structlog

from ..config import Config
from ..domain.agents import AgentDefinition
from ..domain.environment import PERSONAL, inherited_environment
from ..domain.errors import BullpenError, Conflict, NotFound
from ..domain.failures import describe_failure
from ..domain.records import RepositorySettings
from ..domain.rules import Rule
from ..domain.snapshot import Snapshot, Worker
from ..keeper.marker import MARKER
from ..keeper.spool import SpoolGone
from ..log.recording import Recording
from ..log.recording_store import RecordingStore
from ..sandbox.access import RunAccess, describe_access
from ..sandbox.agent_files import AgentFiles
from ..sandbox.files import WorkspaceFiles
from ..sandbox.roots import WorkspaceRoots
from ..store.events import EventStore
from .children import ChildHandles
from .images import Images
from .run_sandbox import RunSandbox
from .screens import Screens

log = structlog.get_logger()

TERMINAL_VARIABLES = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


def user_environment() -> dict[str, str]:
    """Return the environment of a program that a user runs in a terminal, from that of the server."""
    return {**inherited_environment(os.environ, PERSONAL), **TERMINAL_VARIABLES}


class AgentCatalog(Protocol):
    """The known agents, and how each is started; `agents.registry.AgentRegistry` implements it."""

    def get(self, agent_id: str) -> AgentDefinition:
        """Return the definition of an agent, or raise NotFound."""

    def default(self) -> str:
        """Return the id of the agent that starts when none is named."""

    def all(self) -> list[AgentDefinition]:
        """Return all definitions."""

    def command(self, definition: AgentDefinition, continues: bool = False) -> tuple[str, ...]:
        """Return the command line of the agent; `continues`: the one that continues its last conversation."""

    def environment(self, definition: AgentDefinition) -> dict[str, str]:
        """Return the variables that the agent's process gets."""


class WorkerServices:
    """The services of one server that its workers share."""

    def __init__(
        self,
        config: Config,
        store: EventStore,
        children: ChildHandles,
        screens: Screens,
        agents: AgentCatalog,
        roots: WorkspaceRoots,
        worker_credentials: Callable[[str, int], Mapping[str, str]] = lambda worker_id, run: {},
    ) -> None:
        """`worker_credentials` returns the environment variables with which a run can call the server."""
        self.config = config
        self.store = store
        self.children = children
        self.screens = screens
        self.agents = agents
        self.roots = roots
        self.worker_credentials = worker_credentials
        self.images = Images(config.home / "images")
        self.recordings = RecordingStore(config.home / "recordings")
        self.repositories: dict[str, RepositorySettings] = {}  # by id, as stored
        self.sandbox = RunSandbox(self)
        self.rules: tuple[Rule, ...] = config.rules  # the rules in force for automatic answers

    def environment(
        self,
        worker: Worker,
        repo_id: str | None,
        base: Mapping[str, str],
        more: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Return the environment of a run: `base`, the variables of its repository, `more`, and the marker.

        The marker comes last: no other variable may hide which processes a child left behind.
        """
        marker = {MARKER: self.children.marker(worker.id, worker.run)}
        return {**base, **self._repository_environment(repo_id), **(more or {}), **marker}

    def working_directory(self, worker: Worker) -> str:
        """Return the directory a worker runs in, or raise Forbidden if it is not inside a workspace root."""
        return str(self.roots.directory(worker.workspace))

    def files(self, workspace: str) -> WorkspaceFiles:
        """Return the files of a workspace as viewers may see them, without the user's secrets."""
        return WorkspaceFiles(workspace, self.roots)

    def files_of_agent(self, worker: Worker, repo_id: str | None) -> AgentFiles:
        """Return the files that an agent may see and change: its workspace, and what users have allowed."""
        is_sandboxed = worker.sandbox not in (None, "open")
        workspace = WorkspaceFiles(worker.workspace, self.roots, protects_git=is_sandboxed)
        return AgentFiles(workspace, self.sandbox.grants, repo_id)

    def run_access(self, snapshot: Snapshot, worker: Worker) -> RunAccess:
        """Return what a run of a worker could read, write and reach if it began now."""
        try:
            environment = self.agents.environment(self.agents.get(worker.agent_id or ""))
        except NotFound:  # no agent, or its definition was removed
            environment = user_environment()
        workspace = os.path.realpath(worker.workspace)
        profile = self.sandbox.profile(snapshot, worker, environment, workspace)
        return describe_access(profile, self.sandbox.hosts(snapshot))

    def _repository_environment(self, repo_id: str | None) -> dict[str, str]:
        """Return the variables that the user has set for a repository."""
        settings = self.repositories.get(repo_id or "")
        return settings.env if settings else {}

    def default_agent(self, repo_id: str | None) -> str:
        """Return the default agent of a repository, or of the server if the repository has none."""
        settings = self.repositories.get(repo_id or "")
        return (settings.agent_id if settings else None) or self.agents.default()

    def installed_agent(self, agent_id: str) -> AgentDefinition:
        """Return an agent's definition. Raise NotFound without one, Conflict if it is not installed."""
        definition = self.agents.get(agent_id)
        self.agents.command(definition)
        return definition

    def require_program(self, name: str, workspace: str, repo_id: str | None) -> None:
        """Raise Conflict if there is no program of this name, before a worker exists that could only fail."""
        path = {**user_environment(), **self._repository_environment(repo_id)}.get("PATH")
        if shutil.which(os.path.join(workspace, name) if "/" in name else name, path=path) is None:
            raise Conflict(f"cannot start {name}: there is no such program")

    def recording(self, worker_id: str, run: int) -> Recording:
        """Return the recording of a run, running or ended."""
        child = self.children.get(worker_id, run)
        return child.recording if child else Recording(self.children.spool(worker_id, run))

    def read_tail(self, worker_id: str, run: int, limit: int, stream: str = "out") -> tuple[int, bytes]:
        """Return the offset and the bytes of the last `limit` bytes that a run printed."""
        recording = Recording(self.children.spool(worker_id, run, stream))
        try:
            start = max(recording.start, recording.end - limit)
            output = b""
            while piece := recording.read(start + len(output), limit):
                output += piece
        except SpoolGone:
            return 0, b""
        finally:
            recording.close()
        return start, output

    async def warm_up(self) -> None:
        """Load the emulator and start a keeper, so that the first terminal need not wait for them."""
        try:
            await asyncio.gather(self.screens.warm_up(), self.children.warm_up())
        except (BullpenError, OSError, MemoryError) as error:
            log.warning("not warmed up; the first terminal tries again", reason=describe_failure(error))

    async def remove_files(self, worker_id: str) -> None:
        """Remove the spools and saved screens of a purged worker."""
        await self.children.remove_spools(worker_id)
        await self.screens.forget(worker_id)
        await asyncio.to_thread(shutil.rmtree, self.config.home / "proxy" / worker_id, ignore_errors=True)
