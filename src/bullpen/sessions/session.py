"""One open session: its log, its running workers, and the commands that clients give to it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..domain import commands, queue
from ..domain.commands import AddWorker
from ..domain.conversation_rules import login_command
from ..domain.deadlines import TimeoutSettings
from ..domain.errors import BullpenError, Conflict, Invalid, NotFound
from ..domain.events import Draft, WorkerCommand
from ..domain.ids import new_id
from ..domain.prompts import Prompt, PromptResult, find_addressee
from ..domain.queue import Queue, QueueAdded, QueueItem, QueueSettings
from ..domain.screen_patterns import JudgedActivity
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import SessionStatus, WorkerState
from ..log.log import Change, CommittedChange, SessionLog
from ..store.answers import PendingAnswer
from ..workers import acp_orders, orders
from ..workers.conversation_change import ConversationChange
from ..workers.foreground import foreground_programs
from ..workers.kinds import KINDS
from ..workers.pty_agent import PtyAgent
from ..workers.terminal import TerminalWorker
from ..workers.worker_services import WorkerServices
from .automatic_answers import AutomaticAnswers
from .deadlines import SessionDeadlines
from .prompting import PromptDelivery, TextComposer
from .running_workers import RunningWorkers
from .slots import AgentSlots
from .tasks import BackgroundTasks
from .titling import QueueTitling
from .worker_orders import complete_order

__all__ = ["Prompt", "PromptResult", "Session"]


class Session:
    """A session in memory. REST routes, sockets and background jobs call its methods.

    Each method decides on the snapshot, stores the decision as events and then carries it out. The log
    applies one decision at a time.
    """

    def __init__(
        self, session_log: SessionLog, services: WorkerServices, tasks: BackgroundTasks, slots: AgentSlots
    ) -> None:
        self.log = session_log
        self._services = services
        self._tasks = tasks
        self._slots = slots
        self._titling = QueueTitling(session_log, services, tasks)
        self._prompting = PromptDelivery(session_log, services, slots, self._titling)
        self._running = RunningWorkers(session_log, services, tasks)
        self._deadlines = SessionDeadlines(session_log, _timeout_settings(services), tasks)
        self._answering = AutomaticAnswers(session_log, services, tasks)
        self._dispatching: asyncio.Task[None] | None = None
        self._programs: Mapping[str, str] = {}

    @property
    def id(self) -> str:
        return self.log.id

    @property
    def snapshot(self) -> Snapshot:
        return self.log.snapshot

    @property
    def busy(self) -> bool:
        """Return whether a worker still runs, so that the session must stay in memory."""
        return bool(self._running)

    @property
    def programs(self) -> dict[str, str]:
        """Return the programs in the foreground of its terminals by worker, as last read."""
        alive = {worker.id for worker in self.snapshot.workers.values() if worker.alive}
        return {id: name for id, name in self._programs.items() if id in alive}

    def read_programs(self) -> bool:
        """Read which programs are in the foreground of its terminals; return whether that has changed."""
        before, self._programs = self._programs, foreground_programs(self.snapshot)
        return self._programs != before

    # Workers

    async def add_worker(self, order: AddWorker, answer: PendingAnswer[Snapshot] | None = None) -> Worker:
        """Start a worker, and return it once its spawning is stored. Raise Invalid for an unknown type.

        If the order names a role, a worker that ended in this role is replaced.
        """
        if order.type not in KINDS:
            raise Invalid(f"this server cannot run a worker of type {order.type}")
        order = complete_order(order, self._services, self.snapshot.repo_id)
        return await self._spawn(
            lambda snapshot: commands.start_worker(snapshot, order), answer, is_agent=order.type == "agent"
        )

    async def spawn_agent(self, order: AddWorker, make_workspace: Callable[[str], Path]) -> Worker:
        """Start an agent in a role; it replaces one that ended there.

        `make_workspace` is called only if the order is accepted, so that a refused one leaves no directory.
        Its refusal, and an agent that is not installed, are recorded as a failure of the agent.
        """
        order = complete_order(order, self._services, must_be_installed=False)

        def decide(snapshot: Snapshot) -> list[Draft]:
            commands.start_in_role(snapshot, order)
            try:
                workspace = make_workspace(order.workspace)
            except BullpenError as error:
                return commands.start_in_role(snapshot, order, str(error))
            return commands.start_in_role(snapshot, replace(order, workspace=str(workspace)))

        return await self._spawn(decide, None, is_agent=True)

    async def restart_worker(self, worker_id: str, answer: PendingAnswer[Snapshot] | None = None) -> Worker:
        """Start the next run of a worker that ended. An agent continues its conversation."""
        worker = self.snapshot.worker(worker_id)
        if worker.state is WorkerState.TERMINATED:
            await self.wait_until_stopped([worker_id])  # its end is stored before its process has ended
        is_agent = worker.type == "agent"
        return await self._spawn(
            lambda snapshot: [commands.restart_worker(snapshot, worker_id)], answer, is_agent=is_agent
        )

    async def restart(
        self, continue_conversation: bool, answer: PendingAnswer[Snapshot] | None = None
    ) -> Worker:
        """End the run of the primary agent, wait for its process, and start the next run.

        The next run continues the conversation or begins a new one. Raise Conflict if the session has no
        agent.
        """
        worker = self.snapshot.primary
        if worker is None:
            raise NotFound(f"session {self.id} has no agent to restart")
        return await self.restart_agent(worker.id, continue_conversation, answer)

    async def restart_agent(
        self, worker_id: str, continue_conversation: bool, answer: PendingAnswer[Snapshot] | None = None
    ) -> Worker:
        """End the current run of an agent and wait for its process, then start the next run.

        It continues the conversation or begins a new one. Raise Conflict if the worker is not an agent.
        """
        worker = self.snapshot.worker(worker_id)
        if worker.type != "agent":
            raise Conflict(f"the worker in role {worker.role} is a {worker.type}, not an agent")
        await self._commit_end(lambda snapshot: commands.end_run_for_restart(snapshot, worker_id))
        await self.wait_until_stopped([worker_id])
        if continue_conversation:
            return await self.restart_worker(worker_id, answer)
        return await self._spawn(
            lambda snapshot: commands.restart_with_new_conversation(snapshot, worker_id),
            answer,
            is_agent=True,
        )

    async def log_in(self, worker_id: str, answer: PendingAnswer[Snapshot] | None = None) -> Worker:
        """Start a terminal that runs the login command of an agent, and return this new worker.

        Raise Conflict if no login command is known.
        """
        worker = self.snapshot.worker(worker_id)
        if worker.type != "agent" or worker.agent_id is None:
            raise Conflict(f"the worker in role {worker.role} is a {worker.type}, not an agent")
        definition = self._services.agents.get(worker.agent_id)
        command = login_command(self.snapshot.conversations[worker_id], definition)
        if not command:
            raise Conflict(f"no login command is known for {definition.name}")
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
        """End a worker and wait until its process has ended. Ending it twice is allowed."""
        await self.terminate_worker(worker_id, reason)
        await self.wait_until_stopped([worker_id])
        return self.snapshot.worker(worker_id)

    async def terminate_worker(self, worker_id: str, reason: str) -> None:
        """Store the end of a worker; its process is stopped in the background."""
        await self._commit_end(lambda snapshot: commands.end_worker(snapshot, worker_id, reason))

    async def end(
        self, status: SessionStatus, reason: str, answer: PendingAnswer[Snapshot] | None = None
    ) -> None:
        """End the session and wait until the processes of all its workers have ended. Worktrees stay."""
        await self.terminate(status, reason, answer)
        await self.wait_until_stopped()

    async def terminate(
        self, status: SessionStatus, reason: str, answer: PendingAnswer[Snapshot] | None = None
    ) -> None:
        """Store the end of the session; the processes of its workers are stopped in the background."""
        await self._commit_end(lambda snapshot: commands.end_session(snapshot, status, reason), answer)

    async def reopen(self, answer: PendingAnswer[Snapshot] | None = None) -> None:
        """Make an ended session active again. It starts no worker; each can be restarted."""
        await self._commit_drafts(commands.reopen_session, answer)

    async def wait_until_stopped(self, worker_ids: Sequence[str] | None = None) -> None:
        """Wait until the processes of these workers (default: all) have ended.

        Call it only after the events that terminate the workers are stored: it also stops the processes.
        """
        await self._running.stop(worker_ids)

    async def edit(self, title: str | None, on_last_disconnect: str | None) -> None:
        """Change the title or what happens when the last viewer leaves; None keeps the current value."""
        await self._commit_drafts(
            lambda snapshot: commands.change_session(snapshot, title, on_last_disconnect)
        )

    def terminal(self, worker_id: str) -> TerminalWorker:
        """Return the latest run of a terminal, running or not; raise Conflict if it is not a terminal."""
        if self.log.closed:
            raise NotFound(f"no session {self.id}")
        worker = self.snapshot.worker(worker_id)
        latest = self._running.latest(worker)
        if not isinstance(latest, TerminalWorker):
            raise Conflict(f"the worker in role {worker.role} has no terminal, its type is {worker.type}")
        return latest

    def close(self) -> None:
        """Close the log and the terminals of a session that is being purged, and notify their followers."""
        self.log.close()
        self._running.close_terminals()

    async def image_as_input(self, worker_id: str, data: bytes) -> bytes:
        """Store an image and return the terminal input (its path) that names it to the agent."""
        terminal, images = self.terminal(worker_id), self._services.images
        image = await asyncio.to_thread(images.add, self.id, data)
        path = str(images.path(self.id, image.id))
        seen = await self._services.screens.view(terminal.worker, terminal.recording)
        return orders.image_as_input(terminal.worker, path, seen.bracketed_paste, self._services.agents)

    # Agents

    async def report_activity(self, worker_id: str, run: int | None, verdict: JudgedActivity) -> None:
        """Record the activity that an agent in a terminal reports. Raise Conflict if that run is over."""
        worker = self.snapshot.worker(worker_id)
        agent = self._running.latest(worker)
        if not isinstance(agent, PtyAgent):
            raise Conflict(f"the worker in role {worker.role} is not an agent in a terminal")
        if run not in (None, worker.run) or worker.state is not WorkerState.ACTIVE:
            raise Conflict(f"that run of the agent in role {worker.role} is over")
        await agent.report_activity(verdict)

    async def prompt(self, order: Prompt, compose: TextComposer | None = None) -> PromptResult:
        """Send a prompt to an agent, or queue it; the same prompt id has an effect only once.

        `compose` returns the text to send in place of the text of the order.
        """
        return await self._prompting.prompt(order, compose)

    async def cancel_turn(
        self, worker_id: str | None, by: str, answer: PendingAnswer[Snapshot] | None = None
    ) -> None:
        """Cancel the current turn of an agent. Without a turn, do nothing."""

        def decide(snapshot: Snapshot) -> Change:
            worker = find_addressee(snapshot, worker_id, None)
            if worker is None:
                return Change(answer=answer)
            return orders.cancel_turn(snapshot, worker.id, by, self._services.agents).build(answer=answer)

        await self.log.change(decide)

    async def answer_permission(
        self, permission_id: str, option_id: str, by: str, answer: PendingAnswer[Snapshot] | None = None
    ) -> None:
        """Answer a permission request of an agent. Raise Conflict if it is answered already."""
        await self._commit_conversation(
            lambda snapshot: acp_orders.answer_permission(snapshot, permission_id, option_id, by), answer
        )

    async def answer_question(
        self,
        question_id: str,
        action: str,
        content: dict[str, Any] | None,
        by: str,
        answer: PendingAnswer[Snapshot] | None = None,
    ) -> None:
        """Answer a question of an agent. Raise Conflict if it is answered already."""
        await self._commit_conversation(
            lambda snapshot: acp_orders.answer_question(snapshot, question_id, action, content, by), answer
        )

    async def set_mode(
        self, worker_id: str, mode_id: str, answer: PendingAnswer[Snapshot] | None = None
    ) -> None:
        """Send the agent the mode to use; an event follows when it is set."""
        await self._commit_conversation(
            lambda snapshot: acp_orders.set_mode(snapshot, worker_id, mode_id), answer
        )

    async def set_model(
        self, worker_id: str, model_id: str, answer: PendingAnswer[Snapshot] | None = None
    ) -> None:
        """Send the agent the model to use; an event follows when it is set."""
        await self._commit_conversation(
            lambda snapshot: acp_orders.set_model(snapshot, worker_id, model_id), answer
        )

    async def set_config_option(
        self, worker_id: str, option_id: str, value: str | bool, answer: PendingAnswer[Snapshot] | None = None
    ) -> None:
        """Send the agent a value for one of its options; an event follows when it is set."""
        await self._commit_conversation(
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
        answer: PendingAnswer[Snapshot] | None = None,
    ) -> QueueItem:
        """Add a message to the queue. It is sent when the agent is idle and `scheduled_time` has come."""
        added = QueueAdded(
            id=new_id(),
            message=message,
            image_ids=tuple(image_ids),
            client_id=client_id,
            worker_id=worker_id,
            title=title,
            scheduled_time=scheduled_time,
        )
        return await self._prompting.enqueue(added, answer)

    async def edit_queued(self, item_id: str, **changes: Any) -> QueueItem:
        """Change `message`, `title` or `scheduled_time` of a queued message; omitted fields stay."""
        return await self._prompting.edit(item_id, changes)

    async def remove_queued(self, item_id: str) -> None:
        """Remove a queued message."""
        await self._change_queue(lambda items: queue.remove(items, item_id))

    async def clear_queue(self) -> None:
        """Remove all queued messages."""
        await self._change_queue(queue.clear)

    async def move_queued(
        self, item_id: str, direction: str, answer: PendingAnswer[Snapshot] | None = None
    ) -> None:
        """Move a queued message one place `up` or `down`."""
        await self._change_queue(lambda items: queue.move(items, item_id, direction), answer)

    async def send_now(
        self, item_id: str, by: str = "send now", answer: PendingAnswer[Snapshot] | None = None
    ) -> None:
        """Send a queued message next, and cancel the current turn for it."""

        def decide(snapshot: Snapshot) -> Change:
            drafts = queue.move_to_front(snapshot.queue, item_id)
            item = snapshot.queue.item(item_id)
            worker = find_addressee(snapshot, item.worker_id, None)
            if worker is None:
                return Change(drafts=drafts, answer=answer)
            change = orders.cancel_turn(snapshot, worker.id, by, self._services.agents)
            change.record_drafts(drafts)
            return change.build(answer=answer)

        await self.log.change(decide)

    async def pause_queue(self, answer: PendingAnswer[Snapshot] | None = None) -> None:
        """Stop sending queued messages until `resume_queue`."""
        await self._change_queue(lambda items: queue.pause(items, "a person paused it"), answer)

    async def resume_queue(self, answer: PendingAnswer[Snapshot] | None = None) -> None:
        """Let the queue send its messages again."""
        await self._change_queue(queue.resume, answer)

    async def set_queue_settings(self, settings: QueueSettings) -> QueueSettings:
        """Store queue settings for this session alone."""
        await self._change_queue(lambda items: queue.configure(items, settings))
        return self.snapshot.queue.settings

    async def inherit_queue_settings(self, settings: QueueSettings) -> None:
        """Apply the settings of the repository or server, unless the session has ended or has its own."""

        def decide(snapshot: Snapshot) -> list[Draft]:
            active = snapshot.status is SessionStatus.ACTIVE
            return queue.inherit_settings(snapshot.queue, settings) if active else []

        await self._commit_drafts(decide)

    # Reconciling with the stored state

    def resume(self) -> None:
        """Continue every worker and queue where the previous server process left them."""
        self._running.resume()
        self.reconcile()

    def reconcile(self) -> None:
        """Do what the latest snapshot requires: start and stop workers, set timers, send queued messages."""
        if self._tasks.over:
            return
        self._running.reconcile()
        self._deadlines.reconcile()
        self._answering.reconcile()
        self._titling.reconcile()
        if self.snapshot.queue.waiting and (self._dispatching is None or self._dispatching.done()):
            self._dispatching = self._tasks.create_task(self._prompting.dispatch(), name=f"queue {self.id}")

    async def _commit_drafts(
        self, decide: Callable[[Snapshot], Sequence[Draft]], answer: PendingAnswer[Snapshot] | None = None
    ) -> CommittedChange:
        """Store the events that `decide` returns; the start of a run gets the sandbox level that applies."""
        sandbox = self._services.sandbox

        def in_sandbox(snapshot: Snapshot) -> Change:
            return Change(drafts=sandbox.with_levels(snapshot, decide(snapshot)), answer=answer)

        return await self.log.change(in_sandbox)

    async def _commit_end(
        self, decide: Callable[[Snapshot], Sequence[Draft]], answer: PendingAnswer[Snapshot] | None = None
    ) -> CommittedChange:
        """Store events that end workers, with what their agents must still be sent."""
        return await self.log.change(
            lambda snapshot: acp_orders.end_workers(snapshot, decide(snapshot), answer)
        )

    async def _commit_conversation(
        self, decide: Callable[[Snapshot], ConversationChange], answer: PendingAnswer[Snapshot] | None
    ) -> CommittedChange:
        """Store the change of a conversation that `decide` returns."""
        return await self.log.change(lambda snapshot: decide(snapshot).build(answer=answer))

    async def _change_queue(
        self, decide: Callable[[Queue], list[Draft]], answer: PendingAnswer[Snapshot] | None = None
    ) -> None:
        """Store the queue events that `decide` returns. Raise Conflict if the session has ended."""

        def in_session(snapshot: Snapshot) -> list[Draft]:
            commands.require_active(snapshot)
            return decide(snapshot.queue)

        await self._commit_drafts(in_session, answer)

    async def _spawn(
        self,
        decide: Callable[[Snapshot], Sequence[Draft]],
        answer: PendingAnswer[Snapshot] | None,
        *,
        is_agent: bool,
    ) -> Worker:
        """Store events that start a worker and return this worker; an agent needs a free slot."""
        with self._slots.hold(self.id) if is_agent else nullcontext():
            committed = await self._commit_drafts(decide, answer)
        worker_id = committed.events[-1].worker_id
        assert worker_id is not None
        return committed.snapshot.worker(worker_id)


def _timeout_settings(services: WorkerServices) -> TimeoutSettings:
    """Return the timeouts of permissions and cancelled turns in the settings."""
    settings = services.config
    return TimeoutSettings(permission=settings.permission_timeout, cancel=settings.cancel_grace)
