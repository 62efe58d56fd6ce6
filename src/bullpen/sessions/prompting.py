"""Deliver prompts to agents: at once when the agent is idle, else through the queue."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec
import structlog
from msgspec.structs import replace

from .. import clock
from ..domain import commands, prompts, queue
from ..domain.commands import AddWorker
from ..domain.conversation import UserPrompt
from ..domain.errors import BullpenError, Conflict, Unavailable
from ..domain.events import Draft, Fact
from ..domain.ids import new_id
from ..domain.prompts import ForwardSource, Prompt, PromptResult, PromptRoute
from ..domain.queue import QueueAdded, QueueEdited, QueueFailed, QueueItem
from ..domain.snapshot import Snapshot, Worker
from ..domain.states import WorkerState
from ..log.log import AlreadyAnswered, Change, CommittedChange, SessionLog
from ..store.answers import PendingAnswer
from ..store.append import StoredAnswer
from ..wire.json import encode
from ..workers import orders
from ..workers.conversation_change import ConversationChange
from ..workers.orders import PromptInputs
from ..workers.worker_services import WorkerServices
from .prompt_lookup import PromptLookup
from .slots import AgentSlots
from .titling import QueueTitling

log = structlog.get_logger()
TextComposer = Callable[[], Awaitable[str]]

MAX_WAIT_SECONDS = 30.0  # then the time is read again, because the system clock may have been set
RETRY_SECONDS = 1.0  # after the database could not store a message, for example on a full disk


class PromptDelivery:
    """Sends, queues and dispatches the prompts of one session; the session delegates to it."""

    def __init__(
        self, session_log: SessionLog, services: WorkerServices, slots: AgentSlots, titling: QueueTitling
    ) -> None:
        self._log = session_log
        self._services = services
        self._slots = slots
        self._titling = titling
        self._lookup = PromptLookup(session_log, services)

    async def prompt(self, order: Prompt, compose: TextComposer | None = None) -> PromptResult:
        """Store the prompt, once for each `prompt_id`; a repeated request gets the stored answer.

        `compose` returns the text to send in place of the text of a new order. A repeated order is
        recognised by its own text, because the composed one may be another one by then.
        """
        key, body_hash = self._idempotency_key(order.prompt_id), _hash_body(order)
        if stored := await self._services.store.stored_answer(key):
            return _replay(stored, body_hash)
        if compose is not None:
            order = replace(order, text=await compose())
        inputs = await self._lookup.prompt_inputs(order)
        if order.source is not None:
            order = await self._with_forwarded_text(order, order.source)

        def decide(snapshot: Snapshot) -> Change:
            plan = self._decide(snapshot, order, inputs)
            drafts = plan.drafts if isinstance(plan, ConversationChange) else plan
            result = _find_result(enumerate((draft.fact for draft in drafts), snapshot.last_seq + 1))
            answer = PendingAnswer[Snapshot](key, body_hash, lambda _: (202, encode(result)))
            return (
                plan.build(answer=answer)
                if isinstance(plan, ConversationChange)
                else Change(drafts=plan, answer=answer)
            )

        try:
            committed = await self._commit(decide)
        except AlreadyAnswered as error:
            return _replay(error.answer, body_hash)
        except Conflict:
            # The same request may have been stored meanwhile, and be the reason why the agent is busy.
            if stored := await self._services.store.stored_answer(key):
                return _replay(stored, body_hash)
            raise
        return _find_result((event.seq, event.fact) for event in committed.events)

    async def enqueue(self, message: QueueAdded, answer: PendingAnswer[Snapshot] | None = None) -> QueueItem:
        """Add a message to the queue. An idle agent gets it at once; an agent that has ended is restarted."""

        def decide(snapshot: Snapshot) -> Change:
            commands.require_active(snapshot)
            drafts = [*_restart_if_ended(snapshot, message), *self._enqueue(snapshot, message)]
            return Change(drafts=drafts, answer=answer)

        committed = await self._commit(decide)
        return committed.snapshot.queue.item(message.id)

    async def edit(self, item_id: str, changes: Mapping[str, Any]) -> QueueItem:
        """Change the message, the title or the scheduled time of a queued message."""

        def decide(snapshot: Snapshot) -> Change:
            commands.require_active(snapshot)
            before = snapshot.queue.item(item_id)
            edited = queue.edit(
                snapshot.queue, QueueEdited(id=item_id, **{"message": before.message, **changes})
            )
            return Change(drafts=[edited, *self._title(snapshot, edited)])

        committed = await self._log.change(decide)
        return committed.snapshot.queue.item(item_id)

    async def dispatch(self) -> None:
        """Send queued messages as they become due, one after another, until the queue is empty."""
        while self._log.snapshot.queue.waiting and not self._log.closed:
            now = clock.now_ms()
            found = next(prompts.sendable_items(self._log.snapshot, now), None)
            try:
                if found is not None:
                    await self._send(*found)
                else:
                    await self._wait(prompts.next_due_time(self._log.snapshot, now), now)
            except Unavailable:
                await asyncio.sleep(RETRY_SECONDS)
            except Exception as error:
                if not self._log.closed:
                    log.error("a queue stopped", session=self._log.id, exc_info=error)
                return

    async def _send(self, item: QueueItem, worker: Worker) -> None:
        """Send a queued message; if that is not possible, record the failure."""
        order = Prompt(
            text=item.message,
            prompt_id=item.id,
            worker_id=worker.id,
            image_ids=item.image_ids,
            sender=item.client_id,
            origin=item.origin,
        )
        try:
            inputs = await self._lookup.prompt_inputs(order)
            await self._log.change(lambda snapshot: _send_if_unchanged(snapshot, item, worker, order, inputs))
        except Unavailable:
            raise
        except BullpenError as error:
            fact = QueueFailed(id=item.id, error=str(error))
            await self._log.change(lambda snapshot: _record_queue_failure(snapshot, fact))

    async def _wait(self, due: int | None, now: int) -> None:
        """Wait until the next message is due, or until the session changes."""
        try:
            async with asyncio.timeout(None if due is None else min((due - now) / 1000, MAX_WAIT_SECONDS)):
                await self._log.growth.wait()
        except TimeoutError:
            return

    async def _commit(self, decide: Callable[[Snapshot], Change]) -> CommittedChange:
        """Apply a change; hold an agent slot meanwhile if it may start an agent."""

        def in_sandbox(snapshot: Snapshot) -> Change:
            change = decide(snapshot)
            return replace(change, drafts=self._services.sandbox.with_levels(snapshot, change.drafts))

        if any(worker.type == "agent" and worker.alive for worker in self._log.snapshot.workers.values()):
            return await self._log.change(in_sandbox)
        with self._slots.hold(self._log.id):
            return await self._log.change(in_sandbox)

    def _decide(
        self, snapshot: Snapshot, order: Prompt, inputs: PromptInputs
    ) -> ConversationChange | list[Draft]:
        """Send the prompt, queue it, or cancel the current turn for it, as `route_prompt` decides."""
        message = QueueAdded(
            id=order.prompt_id,
            message=order.text,
            image_ids=order.image_ids,
            client_id=order.sender,
            origin=order.origin,
        )
        worker = prompts.find_addressee(snapshot, order.worker_id, order.role)
        if worker is not None and (order.worker_id or order.role):
            message = replace(message, worker_id=worker.id)
        match prompts.route_prompt(snapshot, order, clock.now_ms()):
            case PromptRoute.SEND if worker is not None and orders.inputs_fit(worker, inputs):
                return orders.send_prompt(snapshot, worker.id, order, inputs)
            case PromptRoute.INTERRUPT:
                assert worker is not None
                by = order.sender or "interrupt"
                change = orders.cancel_turn(snapshot, worker.id, by, self._services.agents)
                urgent = replace(message, urgent=True)
                added = queue.enqueue(snapshot.queue, urgent)
                change.record_drafts([added, *self._title(snapshot, added)])
                return change
            case _:
                return self._enqueue(snapshot, message)

    def _enqueue(self, snapshot: Snapshot, message: QueueAdded) -> list[Draft]:
        """Return the drafts that queue the message, and start an agent for it if the session has none."""
        added = queue.enqueue(snapshot.queue, message)
        drafts = [added, *self._title(snapshot, added)]
        if snapshot.primary is not None:
            return drafts
        definition = self._services.installed_agent(self._services.default_agent(snapshot.repo_id))
        order = AddWorker(
            worker_id=new_id(),
            type="agent",
            name=definition.name,
            agent_id=definition.id,
            agent_kind=definition.kind,
            workspace=snapshot.location_path,
        )
        return [commands.add_worker(snapshot, order), *drafts]

    def _title(self, snapshot: Snapshot, draft: Draft) -> list[Draft]:
        """Return the title event for a message that was added or edited, unless an agent must be asked."""
        assert isinstance(draft.fact, QueueAdded | QueueEdited)
        after = replace(snapshot, queue=queue.fold_queue(snapshot.queue, draft.fact, clock.now_ms()))
        return self._titling.default_title_drafts(after, after.queue.item(draft.fact.id))

    async def _with_forwarded_text(self, order: Prompt, source: ForwardSource) -> Prompt:
        """Return the prompt with the answer or diff of another worker added."""
        origin = prompts.resolve_source(self._log.snapshot, source)
        return prompts.with_forwarded_text(order, origin, await self._lookup.source_text(origin))

    def _idempotency_key(self, prompt_id: str) -> str:
        """Return the key under which the answer to a prompt is stored."""
        return hashlib.sha256(f"prompt {self._log.id} {prompt_id}".encode()).hexdigest()


def _find_result(facts: Iterable[tuple[int, Fact]]) -> PromptResult:
    """Return whether the prompt was sent or queued, by the first fact about it."""
    for seq, fact in facts:
        match fact:
            case UserPrompt():
                return PromptResult(fact.prompt_id, seq, queued=False)
            case QueueAdded():
                return PromptResult(fact.id, seq, queued=True)
    raise AssertionError("every prompt has a fact")


def _replay(stored: StoredAnswer, body_hash: str) -> PromptResult:
    """Return the stored result. Raise Conflict if it belongs to another prompt."""
    if stored.body_hash != body_hash:
        raise Conflict("another prompt was sent under this promptId")
    return msgspec.json.decode(stored.body, type=PromptResult)


def _hash_body(order: Prompt) -> str:
    """Return the hash by which a repeated prompt is recognised."""
    body = encode([order.text, order.worker_id, order.role, order.image_ids, order.source])
    return hashlib.sha256(body).hexdigest()


def _send_if_unchanged(
    snapshot: Snapshot,
    item: QueueItem,
    worker: Worker,
    order: Prompt,
    inputs: PromptInputs,
) -> Change:
    """Send the item as a prompt, unless it was changed or removed meanwhile."""
    found = next(prompts.sendable_items(snapshot, clock.now_ms()), None)
    if found is None or found[0] != item or found[1].id != worker.id:
        return Change()
    return orders.send_prompt(snapshot, worker.id, order, inputs, from_queue=True).build()


def _restart_if_ended(snapshot: Snapshot, message: QueueAdded) -> list[Draft]:
    """Return the event that restarts the addressed agent if it has ended."""
    worker = snapshot.worker(message.worker_id) if message.worker_id else snapshot.primary
    if worker is None or worker.state not in (WorkerState.EXITED, WorkerState.FAILED):
        return []
    return [commands.restart_worker(snapshot, worker.id)]


def _record_queue_failure(snapshot: Snapshot, fact: QueueFailed) -> Change:
    """Record that a message could not be sent, if it is still queued."""
    waits = any(item.id == fact.id for item in snapshot.queue.items)
    return Change(drafts=[Draft(fact)] if waits else [])
