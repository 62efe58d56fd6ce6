"""One open session: its log, its running workers, and the orders it takes."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from msgspec.structs import replace

from ..domain import commands, queue
from ..domain.agents import AgentDefinition
from ..domain.commands import AddWorker
from ..domain.conversation_rules import login_command
from ..domain.deadlines import TimeoutSettings
from ..domain.errors import Conflict, Invalid, NotFound
from ..domain.events import Draft, WorkerCommand
from ..domain.ids import new_id
from ..domain.prompts import Prompt, PromptResult, find_addressee
from ..domain.queue import Queue, QueueAdded, QueueItem, QueueSettings
from ..domain.signs import JudgedActivity
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import SessionStatus, WorkerState
from ..log.log import Change, CommittedChange, RequestAnswer, SessionLog
from ..workers import acp_orders, orders
from ..workers.conversation_change import ConversationChange
from ..workers.kinds import KINDS
from ..workers.pty_agent import PtyAgent
from ..workers.terminal import TerminalWorker
from ..workers.worker_services import WorkerServices
from .answering import AutomaticAnswers
from .deadlines import SessionDeadlines
from .prompting import PromptDelivery
from .running_workers import RunningWorkers
from .slots import AgentSlots
from .tasks import BackgroundTasks
from .titling import QueueTitling

__all__ = ["Prompt", "PromptResult", "Session"]


class Session:
    """Takes one order at a time: decided on the snapshot, stored, then done."""

    def __init__(
        self, session_log: SessionLog, workshop: WorkerServices, tasks: BackgroundTasks, slots: AgentSlots
    ) -> None:
        self.log = session_log
        self._workshop = workshop
        self._tasks = tasks
        self._slots = slots
        self._titling = QueueTitling(session_log, workshop, tasks)
        self._prompting = PromptDelivery(session_log, workshop, slots, self._titling)
        self._lives = RunningWorkers(session_log, workshop, tasks)
        self._deadlines = SessionDeadlines(session_log, _patience(workshop), tasks)
        self._answering = AutomaticAnswers(session_log, workshop, tasks)
        self._dispatching: asyncio.Task[None] | None = None

    @property
    def id(self) -> str:
        return self.log.id

    @property
    def snapshot(self) -> Snapshot:
        return self.log.snapshot

    @property
    def busy(self) -> bool:
        """Whether some worker still runs, so that the session must stay in memory."""
        return bool(self._lives)

    # Workers

    async def add_worker(self, order: AddWorker, answer: RequestAnswer | None = None) -> Worker:
        """Starts a worker, perhaps in the place of one that ended; returns it once its spawning is stored."""
        if order.type not in KINDS:
            raise Invalid(f"this server cannot run a worker of type {order.type}")
        order = complete_order(order, self._workshop, self.snapshot.repo_id)

        def decide(snapshot: Snapshot) -> list[Draft]:
            if order.role is None:
                return [commands.add_worker(snapshot, order)]
            return commands.start_in_role(snapshot, order)

        return await self._spawn(decide, answer, is_agent=order.type == "agent")

    async def spawn_agent(self, order: AddWorker, failure: str | None = None) -> Worker:
        """An agent for a role, in place of one that ended there; `failure` says why it cannot begin."""
        order = complete_order(
            order, self._workshop, must_be_installed=False
        )  # the role tells of the failure
        return await self._spawn(
            lambda snapshot: commands.start_in_role(snapshot, order, failure), None, is_agent=True
        )

    async def restart_worker(self, worker_id: str, answer: RequestAnswer | None = None) -> Worker:
        """The next run of a worker that ended; an agent goes back to its conversation."""
        is_agent = self.snapshot.worker(worker_id).type == "agent"
        return await self._spawn(
            lambda snapshot: [commands.restart_worker(snapshot, worker_id)], answer, is_agent=is_agent
        )

    async def restart(self, continue_conversation: bool, answer: RequestAnswer | None = None) -> Worker:
        """Starts the first agent again, whether it lives or not, and perhaps in the same conversation."""
        worker = self.snapshot.primary
        if worker is None:
            raise NotFound(f"session {self.id} has no agent to restart")
        return await self.restart_agent(worker.id, continue_conversation, answer)

    async def restart_agent(
        self, worker_id: str, continue_conversation: bool, answer: RequestAnswer | None = None
    ) -> Worker:
        """The same for any agent of the session."""
        worker = self.snapshot.worker(worker_id)
        if worker.type != "agent":
            raise Conflict(f"the worker in role {worker.role} is a {worker.type}, not an agent")
        await self._end(lambda snapshot: commands.end_run_for_restart(snapshot, worker_id))
        await self.gone([worker_id])
        if continue_conversation:
            return await self.restart_worker(worker_id, answer)
        return await self._spawn(
            lambda snapshot: commands.restart_with_new_conversation(snapshot, worker_id),
            answer,
            is_agent=True,
        )

    async def log_in(self, worker_id: str, answer: RequestAnswer | None = None) -> Worker:
        """Opens what logs a person in to an agent in a terminal."""
        worker = self.snapshot.worker(worker_id)
        if worker.type != "agent" or worker.agent_id is None:
            raise Conflict(f"the worker in role {worker.role} is a {worker.type}, not an agent")
        definition = self._workshop.agents.get(worker.agent_id)
        command = login_command(self.snapshot.conversations[worker_id], definition)
        if not command:
            raise Conflict(f"nobody knows how to log in to {definition.name}")
        order = AddWorker(
            worker_id=new_id(),
            type="terminal",
            name=f"Log in to {definition.name}",
            workspace=worker.workspace,
        )

        def decide(snapshot: Snapshot) -> list[Draft]:
            spawning = commands.add_worker(snapshot, order)
            fact = WorkerCommand(argv=command, like_agent=definition.id)
            return [spawning, Draft(fact, spawning.worker_id, spawning.role)]

        return await self._spawn(decide, answer, is_agent=False)

    async def end_worker(self, worker_id: str, reason: str) -> Worker:
        """Ends a worker and waits until it is gone. Ending it twice is fine."""
        await self.terminate_worker(worker_id, reason)
        await self.gone([worker_id])
        return self.snapshot.worker(worker_id)

    async def terminate_worker(self, worker_id: str, reason: str) -> None:
        """Ends a worker; its process goes right after."""
        await self._end(lambda snapshot: commands.end_worker(snapshot, worker_id, reason))

    async def end(self, status: SessionStatus, reason: str, answer: RequestAnswer | None = None) -> None:
        """Ends the session and all its workers, side by side, and waits for them. Worktrees stay."""
        await self.terminate(status, reason, answer)
        await self.gone()

    async def terminate(
        self, status: SessionStatus, reason: str, answer: RequestAnswer | None = None
    ) -> None:
        """Ends the session; the processes of its workers go right after."""
        await self._end(lambda snapshot: commands.end_session(snapshot, status, reason), answer)

    async def gone(self, worker_ids: Sequence[str] | None = None) -> None:
        """Waits until the processes of workers whose end is stored are gone; of all when the session's is."""
        await self._lives.stop(worker_ids)

    async def edit(self, title: str | None, on_last_disconnect: str | None) -> None:
        await self._change(lambda snapshot: commands.change_session(snapshot, title, on_last_disconnect))

    def terminal(self, worker_id: str) -> TerminalWorker:
        """The latest run of a terminal, living or not."""
        if self.log.closed:
            raise NotFound(f"no session {self.id}")
        worker = self.snapshot.worker(worker_id)
        latest = self._lives.latest(worker)
        if not isinstance(latest, TerminalWorker):
            raise Conflict(f"the worker in role {worker.role} is a {worker.type}, not a terminal")
        return latest

    def close(self) -> None:
        """Nothing of it will be left: whoever follows it, or looks at a terminal, is told that it is gone."""
        self.log.close()
        self._lives.leave_terminals()

    async def image_as_input(self, worker_id: str, data: bytes) -> bytes:
        """Keeps an image and returns what is typed to speak of it in a terminal (R76)."""
        terminal, images = self.terminal(worker_id), self._workshop.images
        image = await asyncio.to_thread(images.add, self.id, data)
        path = str(images.path(self.id, image.id))
        seen = await self._workshop.screens.seen(terminal.worker, terminal.recording)
        return orders.image_as_input(terminal.worker, path, seen.pastes, self._workshop.agents)

    # Agents

    async def report_activity(self, worker_id: str, run: int | None, verdict: JudgedActivity) -> None:
        """What an agent in a terminal says itself that it does; a run that is over says nothing any more."""
        worker = self.snapshot.worker(worker_id)
        agent = self._lives.latest(worker)
        if not isinstance(agent, PtyAgent):
            raise Conflict(f"the worker in role {worker.role} is not an agent in a terminal")
        if run not in (None, worker.run) or worker.state is not WorkerState.ACTIVE:
            raise Conflict(f"that run of the agent in role {worker.role} is over")
        await agent.claim(verdict)

    async def prompt(self, order: Prompt) -> PromptResult:
        """Says something to an agent, once for each promptId."""
        return await self._prompting.prompt(order)

    async def cancel_turn(self, worker_id: str | None, by: str, answer: RequestAnswer | None = None) -> None:
        """Cancels the turn of an agent; nothing happens when there is none."""

        def decide(snapshot: Snapshot) -> Change:
            worker = find_addressee(snapshot, worker_id, None)
            if worker is None:
                return Change(answer=answer)
            return orders.cancel(snapshot, worker.id, by, self._workshop.agents).change(answer=answer)

        await self.log.change(decide)

    async def answer_permission(
        self, permission_id: str, option_id: str, by: str, answer: RequestAnswer | None = None
    ) -> None:
        """The first answer counts; a second is a Conflict."""
        await self._exchange(
            lambda snapshot: acp_orders.answer_permission(snapshot, permission_id, option_id, by), answer
        )

    async def answer_question(
        self,
        question_id: str,
        action: str,
        content: dict[str, Any] | None,
        by: str,
        answer: RequestAnswer | None = None,
    ) -> None:
        await self._exchange(
            lambda snapshot: acp_orders.answer_question(snapshot, question_id, action, content, by), answer
        )

    async def set_mode(self, worker_id: str, mode_id: str, answer: RequestAnswer | None = None) -> None:
        await self._exchange(lambda snapshot: acp_orders.set_mode(snapshot, worker_id, mode_id), answer)

    async def set_model(self, worker_id: str, model_id: str, answer: RequestAnswer | None = None) -> None:
        await self._exchange(lambda snapshot: acp_orders.set_model(snapshot, worker_id, model_id), answer)

    async def set_config_option(
        self, worker_id: str, option_id: str, value: str | bool, answer: RequestAnswer | None = None
    ) -> None:
        await self._exchange(
            lambda snapshot: acp_orders.set_config_option(snapshot, worker_id, option_id, value), answer
        )

    # The queue

    async def enqueue(
        self,
        message: str,
        image_ids: Sequence[str] = (),
        client_id: str | None = None,
        *,
        worker_id: str | None = None,
        title: str | None = None,
        scheduled_time: int | None = None,
        answer: RequestAnswer | None = None,
    ) -> QueueItem:
        wish = QueueAdded(
            id=new_id(),
            message=message,
            image_ids=tuple(image_ids),
            client_id=client_id,
            worker_id=worker_id,
            title=title,
            scheduled_time=scheduled_time,
        )
        return await self._prompting.enqueue(wish, answer)

    async def edit_queued(self, item_id: str, **changes: Any) -> QueueItem:
        """`message`, `title`, `scheduled_time`: what is left out stays."""
        return await self._prompting.edit(item_id, changes)

    async def remove_queued(self, item_id: str) -> None:
        await self._change_queue(lambda held: queue.remove(held, item_id))

    async def clear_queue(self) -> None:
        await self._change_queue(queue.clear)

    async def move_queued(self, item_id: str, direction: str, answer: RequestAnswer | None = None) -> None:
        await self._change_queue(lambda held: queue.move(held, item_id, direction), answer)

    async def send_now(self, item_id: str, by: str = "send now", answer: RequestAnswer | None = None) -> None:
        """The message goes next, in the place of the turn that runs."""

        def decide(snapshot: Snapshot) -> Change:
            drafts = queue.move_to_front(snapshot.queue, item_id)
            item = snapshot.queue.item(item_id)
            worker = find_addressee(snapshot, item.worker_id, None)
            if worker is None:
                return Change(drafts=drafts, answer=answer)
            exchange = orders.cancel(snapshot, worker.id, by, self._workshop.agents)
            exchange.tell_others(drafts)
            return exchange.change(answer=answer)

        await self.log.change(decide)

    async def pause_queue(self, answer: RequestAnswer | None = None) -> None:
        await self._change_queue(lambda held: queue.pause(held, "a person paused it"), answer)

    async def resume_queue(self, answer: RequestAnswer | None = None) -> None:
        await self._change_queue(queue.resume, answer)

    async def queue_settings(self, settings: QueueSettings) -> QueueSettings:
        await self._change_queue(lambda held: queue.configure(held, settings))
        return self.snapshot.queue.settings

    async def inherit_queue_settings(self, settings: QueueSettings) -> None:
        """Nothing happens to a session that has ended, or has settings of its own."""

        def decide(snapshot: Snapshot) -> list[Draft]:
            active = snapshot.status is SessionStatus.ACTIVE
            return queue.inherit_settings(snapshot.queue, settings) if active else []

        await self._change(decide)

    # What follows from what is stored

    def resume(self) -> None:
        """After a start of the server: takes up every worker, and what waits for one, where it was left."""
        self._lives.resume()
        self.follow()

    def follow(self) -> None:
        """Does what the latest snapshot calls for: starts and ends workers, sends what waits."""
        if self._tasks.over:
            return
        self._lives.follow()
        self._deadlines.follow()
        self._answering.follow()
        self._titling.follow()
        if self.snapshot.queue.waiting and (self._dispatching is None or self._dispatching.done()):
            self._dispatching = self._tasks.create_task(self._prompting.dispatch(), name=f"queue {self.id}")

    async def _change(
        self, decide: Callable[[Snapshot], Sequence[Draft]], answer: RequestAnswer | None = None
    ) -> CommittedChange:
        return await self.log.change(lambda snapshot: Change(drafts=decide(snapshot), answer=answer))

    async def _end(
        self, decide: Callable[[Snapshot], Sequence[Draft]], answer: RequestAnswer | None = None
    ) -> CommittedChange:
        return await self.log.change(lambda snapshot: acp_orders.ending(snapshot, decide(snapshot), answer))

    async def _exchange(
        self, decide: Callable[[Snapshot], ConversationChange], answer: RequestAnswer | None
    ) -> CommittedChange:
        return await self.log.change(lambda snapshot: decide(snapshot).change(answer=answer))

    async def _change_queue(
        self, decide: Callable[[Queue], list[Draft]], answer: RequestAnswer | None = None
    ) -> None:
        def in_session(snapshot: Snapshot) -> list[Draft]:
            commands.require_active(snapshot)
            return decide(snapshot.queue)

        await self._change(in_session, answer)

    async def _spawn(
        self, decide: Callable[[Snapshot], Sequence[Draft]], answer: RequestAnswer | None, *, is_agent: bool
    ) -> Worker:
        with self._slots.hold(self.id) if is_agent else nullcontext():
            committed = await self._change(decide, answer)
        worker_id = committed.events[-1].worker_id
        assert worker_id is not None
        return committed.snapshot.worker(worker_id)


def _patience(workshop: WorkerServices) -> TimeoutSettings:
    settings = workshop.config
    return TimeoutSettings(permission=settings.permission_timeout, cancel=settings.cancel_grace)


def complete_order(
    order: AddWorker, workshop: WorkerServices, repo_id: str | None = None, *, must_be_installed: bool = True
) -> AddWorker:
    """Return the order with an agent's definition and name. Raise as `require_agent` does."""
    if order.type != "agent":
        return order
    agent_id = order.agent_id or workshop.default_agent(repo_id)
    definition = require_agent(workshop, agent_id, must_be_installed=must_be_installed)
    return replace(
        order, name=order.name or definition.name, agent_id=definition.id, agent_kind=definition.kind
    )


def require_agent(
    workshop: WorkerServices, agent_id: str, *, must_be_installed: bool = True
) -> AgentDefinition:
    """Return an agent's definition. Raise Invalid without one, Conflict if the agent is not installed."""
    try:
        return workshop.installed_agent(agent_id) if must_be_installed else workshop.agents.get(agent_id)
    except NotFound as error:
        raise Invalid(str(error)) from None
