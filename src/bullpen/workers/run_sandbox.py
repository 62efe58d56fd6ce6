"""Decide the sandbox level of each run of a worker, and plan its profile."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import structlog
from msgspec.structs import replace

from .. import clock
from ..domain.errors import NotFound
from ..domain.events import Draft, SandboxRefusal, WorkerSpawning
from ..domain.grants import host_target, is_host
from ..domain.sandbox import DEFAULT_LEVEL, SandboxLevel, agent_level, strictest
from ..domain.snapshot import Snapshot, Worker
from ..log.log import SessionLog
from ..sandbox.grants import SandboxGrants
from ..sandbox.planner import SandboxPlanner
from ..sandbox.profile import Profile
from ..sandbox.proxy import ProxyRequest, SandboxProxy

if TYPE_CHECKING:
    from ..domain.agents import AgentDefinition
    from .worker_services import WorkerServices

log = structlog.get_logger()

REPORT_SECONDS = 60.0  # between two events about the same host
MAX_REPORTED = 200  # hosts of one run


class RunSandbox:
    """The sandbox of the runs of one server."""

    def __init__(self, services: "WorkerServices") -> None:
        self.planner = SandboxPlanner(services.config, services.roots)
        self.grants: SandboxGrants | None = None  # set by a server with a database
        self._services = services

    def with_levels(self, snapshot: Snapshot, drafts: Sequence[Draft]) -> list[Draft]:
        """Return the drafts; each start of a run without a level gets the one that applies now."""
        return [
            replace(each, fact=replace(each.fact, sandbox=self._level(snapshot, each)))
            if isinstance(each.fact, WorkerSpawning) and each.fact.sandbox is None
            else each
            for each in drafts
        ]

    def level(self, snapshot: Snapshot, worker: Worker) -> SandboxLevel:
        """Return the level of a run: the recorded one, or for a start by an older server the default."""
        if worker.sandbox is not None:
            return worker.sandbox
        return DEFAULT_LEVEL if worker.type == "agent" or worker.owner else self._of_terminal(None)

    def profile(self, snapshot: Snapshot, worker: Worker, env: Mapping[str, str], workspace: str) -> Profile:
        """Return the profile of a run. The commands of an agent have its workspace and state."""
        level = self.level(snapshot, worker)
        agent = snapshot.workers.get(worker.owner) if worker.owner else worker
        if agent is not None and agent is not worker:
            # An agent chooses the directory of its terminal, which must not extend what the agent may write.
            workspace = self._services.working_directory(agent)
        definition = self._definition(agent.agent_id if agent else None)
        granted = self.grants.mounts(snapshot.repo_id) if self.grants else ()
        proxy = self.planner.proxy_directory(worker.id) if level == "sealed" else None
        return self.planner.plan(level, snapshot.id, workspace, env, definition, granted, proxy)

    def hosts(self, snapshot: Snapshot) -> list[str]:
        """Return the hosts that the sealed runs of a session may reach."""
        granted = self.grants.hosts(snapshot.repo_id) if self.grants else []
        return [*self._services.config.sandbox_hosts, *granted]

    async def serve_proxy(self, session_log: SessionLog, worker: Worker) -> None:
        """Serve the proxy of a sealed run until cancelled; return at once for other runs."""
        if self.level(session_log.snapshot, worker) != "sealed":
            return
        reported: dict[str, float] = {}

        async def report(request: ProxyRequest, can_be_allowed: bool) -> None:
            target, now = host_target(request.host, request.port), clock.monotonic()
            is_recent = now - reported.get(target, -REPORT_SECONDS) < REPORT_SECONDS
            if is_recent or len(reported) >= MAX_REPORTED:
                return
            reported[target] = now
            refusal = SandboxRefusal(
                kind="host",
                target=target,
                program=request.program,
                can_be_allowed=can_be_allowed and is_host(target),
            )
            await session_log.append([Draft(refusal, worker.id, worker.role)])

        try:
            proxy = SandboxProxy(lambda: self.hosts(session_log.snapshot), report)
            async with proxy.listen(self.planner.proxy_directory(worker.id)):
                await asyncio.Event().wait()
        except OSError as error:
            log.error("a sealed run has no proxy", worker=worker.id, reason=str(error))

    def repository_level(self, repo_id: str | None, *others: SandboxLevel | None) -> SandboxLevel:
        """Return the level of what Bullpen runs for agents of a repository, such as its setup command."""
        settings = self._services.repositories.get(repo_id or "")
        of_repository = settings.sandbox if settings else None
        return agent_level(of_repository, self._services.config.sandbox, *others)

    def _level(self, snapshot: Snapshot, draft: Draft) -> SandboxLevel | None:
        """Return the level of a run that is about to be recorded; None if it has no process."""
        fact = draft.fact
        assert isinstance(fact, WorkerSpawning)
        if fact.worker_type == "agent":
            definition = self._definition(fact.agent_id)
            of_agent = definition.sandbox if definition else None
            return self.repository_level(snapshot.repo_id, fact.sandbox_asked, snapshot.sandbox, of_agent)
        if fact.worker_type != "terminal":
            return None
        known = snapshot.workers.get(draft.worker_id or "")
        if known is not None and known.owner is not None:
            return self.level(snapshot, snapshot.worker(known.owner))
        return self._of_terminal(fact.sandbox_asked)

    def _of_terminal(self, asked: SandboxLevel | None) -> SandboxLevel:
        """Return the level of a terminal that a user opens."""
        return strictest(asked, self._services.config.sandbox_terminals) or "open"

    def _definition(self, agent_id: str | None) -> "AgentDefinition | None":
        """Return the definition of an agent; None if it was removed."""
        try:
            return self._services.agents.get(agent_id or "")
        except NotFound:
            return None
