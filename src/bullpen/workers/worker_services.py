"""What every worker works with: children, screens, settings of the house."""

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import Protocol

import structlog

from ..config import Config
from ..domain.agents import AgentDefinition
from ..domain.environment import PERSONAL, inherited_environment
from ..domain.errors import BullpenError
from ..domain.failures import describe_failure
from ..domain.records import RepositorySettings
from ..domain.rules import Rule
from ..domain.snapshot import Worker
from ..keeper.marker import MARKER
from ..keeper.spool import SpoolGone
from ..log.recording import Recording
from ..log.recordings import RecordingStore
from ..sandbox.files import WorkspaceFiles
from ..sandbox.roots import WorkspaceRoots
from ..store.events import EventStore
from .children import ChildHandles
from .images import Images
from .screens import Screens

log = structlog.get_logger()

TERMINAL = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


def personal() -> dict[str, str]:
    """What a program that a person runs in a terminal is given of our environment."""
    return {**inherited_environment(os.environ, PERSONAL), **TERMINAL}


class AgentCatalog(Protocol):
    """The agents there are, and how each is started."""

    def get(self, agent_id: str) -> AgentDefinition: ...

    def default(self) -> str: ...

    def all(self) -> list[AgentDefinition]: ...

    def command(self, definition: AgentDefinition, continues: bool = False) -> tuple[str, ...]: ...

    def environment(self, definition: AgentDefinition) -> dict[str, str]: ...


class WorkerServices:
    """Shared by all workers of one server."""

    def __init__(
        self,
        config: Config,
        store: EventStore,
        children: ChildHandles,
        screens: Screens,
        agents: AgentCatalog,
        roots: WorkspaceRoots,
        own_key: Callable[[str, int], Mapping[str, str]] = lambda worker_id, run: {},
    ) -> None:
        """`own_key` are the variables with which a run of a worker can say what it does."""
        self.config = config
        self.store = store
        self.children = children
        self.screens = screens
        self.agents = agents
        self.roots = roots
        self.own_key = own_key
        self.images = Images(config.home / "images")
        self.recordings = RecordingStore(config.home / "recordings")
        self.repositories: dict[str, RepositorySettings] = {}  # by id; as stored
        self.rules: tuple[Rule, ...] = config.rules  # for automatic answers, in force now

    def environment(
        self,
        worker: Worker,
        repo_id: str | None,
        base: Mapping[str, str],
        more: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """The environment of a run: what such a program is given, what its repository sets, what it gets of
        its own; the marker last, for nothing a child says of itself may hide what it leaves behind."""
        marker = {MARKER: self.children.marker(worker.id, worker.run)}
        return {**base, **self._repository_environment(repo_id), **(more or {}), **marker}

    def place(self, worker: Worker) -> str:
        """Return the directory a worker runs in; Forbidden if it is not, or no longer, inside a root."""
        return str(self.roots.directory(worker.workspace))

    def files(self, workspace: str) -> WorkspaceFiles:
        """The files of a workspace as agents and viewers may see them, without the user's secrets."""
        return WorkspaceFiles(workspace, self.roots)

    def _repository_environment(self, repo_id: str | None) -> dict[str, str]:
        """What a person set for everything that runs in a repository."""
        settings = self.repositories.get(repo_id or "")
        return settings.env if settings else {}

    def default_agent(self, repo_id: str | None) -> str:
        """The agent to start when nobody says which: the repository's, else the house's."""
        settings = self.repositories.get(repo_id or "")
        return (settings.agent_id if settings else None) or self.agents.default()

    def installed_agent(self, agent_id: str) -> AgentDefinition:
        """Return an agent's definition. Raise NotFound without one, Conflict if it is not installed."""
        definition = self.agents.get(agent_id)
        self.agents.command(definition)
        return definition

    def recording(self, worker_id: str, run: int) -> Recording:
        """The recording of a run, living or not."""
        child = self.children.get(worker_id, run)
        return child.recording if child else Recording(self.children.spool(worker_id, run))

    def tail(self, worker_id: str, run: int, most: int, stream: str = "out") -> tuple[int, bytes]:
        """The last bytes a run said, and the offset they begin at."""
        recording = Recording(self.children.spool(worker_id, run, stream))
        try:
            start = max(recording.start, recording.end - most)
            said = b""
            while piece := recording.read(start + len(said), most):
                said += piece
        except SpoolGone:
            return 0, b""
        finally:
            recording.close()
        return start, said

    async def warm_up(self) -> None:
        """Do what would delay the first frame of the first terminal: load the emulator, start a keeper."""
        try:
            await asyncio.gather(self.screens.warm_up(), self.children.warm_up())
        except (BullpenError, OSError, MemoryError) as error:
            log.warning("not warmed up; the first terminal tries again", reason=describe_failure(error))

    async def forget(self, worker_id: str) -> None:
        """Removes what a purged worker left on the disk."""
        await self.children.forget_spool(worker_id)
        await self.screens.forget(worker_id)
