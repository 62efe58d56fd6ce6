"""Takes prompts to agents: at once when they are free, through the queue when they are not."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping
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
from ..log.log import AlreadyAnswered, Change, CommittedChange, RequestAnswer, SessionLog
from ..store.append import StoredAnswer
from ..wire.json import encode
from ..workers import orders
from ..workers.conversation_change import ConversationChange
from ..workers.orders import PromptInputs
from ..workers.worker_services import WorkerServices
from .lookup import PromptLookup
from .slots import AgentSlots
from .titling import QueueTitling

log = structlog.get_logger()

LOOK_AGAIN = 30.0  # seconds; a clock that is set meanwhile makes a message due earlier
TRY_AGAIN = 1.0  # seconds until a message that found the disk full is tried again


class PromptDelivery:
    """The prompts of one session."""

    def __init__(
        self, session_log: SessionLog, workshop: WorkerServices, slots: AgentSlots, titling: QueueTitling
    ) -> None:
        self._log = session_log
        self._workshop = workshop
        self._slots = slots
        self._titling = titling
        self._lookup = PromptLookup(session_log, workshop)

    async def prompt(self, order: Prompt) -> PromptResult:
        """Stores the prompt, once for each `prompt_id`; the same again gets the first answer again."""
        key, body_hash = self._key(order.prompt_id), _hash(order)
        if stored := await self._workshop.store.answer(key):
            return _again(stored, body_hash)
        given = await self._lookup.given(order)
        if order.source is not None:
            order = await self._passing_on(order, order.source)

        def decide(snapshot: Snapshot) -> Change:
            plan = self._decide(snapshot, order, given)
            drafts = plan.drafts if isinstance(plan, ConversationChange) else plan
            prompted = _prompted(enumerate((draft.fact for draft in drafts), snapshot.last_seq + 1))
            answer = RequestAnswer(key, body_hash, lambda _: (202, encode(prompted)))
            return (
                plan.change(answer=answer)
                if isinstance(plan, ConversationChange)
                else Change(drafts=plan, answer=answer)
            )

        try:
            committed = await self._change(decide)
        except AlreadyAnswered as error:
            return _again(error.answer, body_hash)
        except Conflict:
            # Its twin may have come in a moment ago, and be what makes the agent busy.
            if stored := await self._workshop.store.answer(key):
                return _again(stored, body_hash)
            raise
        return _prompted((event.seq, event.fact) for event in committed.events)

    async def enqueue(self, wish: QueueAdded, answer: RequestAnswer | None = None) -> QueueItem:
        """A message for the queue; an agent that is free gets it at once, one that has ended is woken."""

        def decide(snapshot: Snapshot) -> Change:
            commands.require_active(snapshot)
            return Change(drafts=[*_waking(snapshot, wish), *self._queued(snapshot, wish)], answer=answer)

        committed = await self._change(decide)
        return committed.snapshot.queue.item(wish.id)

    async def edit(self, item_id: str, changes: Mapping[str, Any]) -> QueueItem:
        """Changes the message, the title or the time of one that waits."""

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
        """Sends what waits, one after another, as long as something does."""
        while self._log.snapshot.queue.waiting and not self._log.closed:
            now = clock.now_ms()
            found = next(prompts.sendable_items(self._log.snapshot, now), None)
            try:
                if found is not None:
                    await self._send(*found)
                else:
                    await self._wait(prompts.next_due_time(self._log.snapshot, now), now)
            except Unavailable:
                await asyncio.sleep(TRY_AGAIN)
            except Exception as error:
                if not self._log.closed:
                    log.error("a queue stopped", session=self._log.id, exc_info=error)
                return

    async def _send(self, item: QueueItem, worker: Worker) -> None:
        order = Prompt(
            text=item.message,
            prompt_id=item.id,
            worker_id=worker.id,
            image_ids=item.image_ids,
            sender=item.client_id,
            origin=item.origin,
        )
        try:
            given = await self._lookup.given(order)
            await self._log.change(lambda snapshot: _sent(snapshot, item, worker, order, given))
        except Unavailable:
            raise
        except BullpenError as error:
            fact = QueueFailed(id=item.id, error=str(error))
            await self._log.change(lambda snapshot: _failed(snapshot, fact))

    async def _wait(self, due: int | None, now: int) -> None:
        try:
            async with asyncio.timeout(None if due is None else min((due - now) / 1000, LOOK_AGAIN)):
                await self._log.news.wait()
        except TimeoutError:
            return

    async def _change(self, decide: Callable[[Snapshot], Change]) -> CommittedChange:
        if any(worker.type == "agent" and worker.alive for worker in self._log.snapshot.workers.values()):
            return await self._log.change(decide)
        with self._slots.hold(self._log.id):
            return await self._log.change(decide)

    def _decide(
        self, snapshot: Snapshot, order: Prompt, given: PromptInputs
    ) -> ConversationChange | list[Draft]:
        wish = QueueAdded(
            id=order.prompt_id,
            message=order.text,
            image_ids=order.image_ids,
            client_id=order.sender,
            origin=order.origin,
        )
        worker = prompts.find_addressee(snapshot, order.worker_id, order.role)
        if worker is not None and (order.worker_id or order.role):
            wish = replace(wish, worker_id=worker.id)
        match prompts.route_prompt(snapshot, order, clock.now_ms()):
            case PromptRoute.SEND if worker is not None and orders.is_prepared(worker, given):
                return orders.prompt(snapshot, worker.id, order, given)
            case PromptRoute.INTERRUPT:
                assert worker is not None
                by = order.sender or "interrupt"
                exchange = orders.cancel(snapshot, worker.id, by, self._workshop.agents)
                urgent = replace(wish, urgent=True)
                added = queue.enqueue(snapshot.queue, urgent)
                exchange.tell_others([added, *self._title(snapshot, added)])
                return exchange
            case _:
                return self._queued(snapshot, wish)

    def _queued(self, snapshot: Snapshot, wish: QueueAdded) -> list[Draft]:
        """The message in the queue, and an agent to take it when the session has none (R2)."""
        added = queue.enqueue(snapshot.queue, wish)
        said = [added, *self._title(snapshot, added)]
        if snapshot.primary is not None:
            return said
        definition = self._workshop.installed_agent(self._workshop.default_agent(snapshot.repo_id))
        order = AddWorker(
            worker_id=new_id(),
            type="agent",
            name=definition.name,
            agent_id=definition.id,
            agent_kind=definition.kind,
            workspace=snapshot.location_path,
        )
        return [commands.add_worker(snapshot, order), *said]

    def _title(self, snapshot: Snapshot, draft: Draft) -> list[Draft]:
        """The title of a message that was added or edited, when it can be told at once."""
        assert isinstance(draft.fact, QueueAdded | QueueEdited)
        after = replace(snapshot, queue=queue.fold_queue(snapshot.queue, draft.fact, clock.now_ms()))
        return self._titling.at_once(after, after.queue.item(draft.fact.id))

    async def _passing_on(self, order: Prompt, source: ForwardSource) -> Prompt:
        origin = prompts.resolve_source(self._log.snapshot, source)
        return prompts.with_forwarded_text(order, origin, await self._lookup.words(origin))

    def _key(self, prompt_id: str) -> str:
        return hashlib.sha256(f"prompt {self._log.id} {prompt_id}".encode()).hexdigest()


def _prompted(facts: Iterable[tuple[int, Fact]]) -> PromptResult:
    """What became of the prompt that these facts tell of."""
    for seq, fact in facts:
        match fact:
            case UserPrompt():
                return PromptResult(fact.prompt_id, seq, queued=False)
            case QueueAdded():
                return PromptResult(fact.id, seq, queued=True)
    raise AssertionError("a prompt is always told of")


def _again(stored: StoredAnswer, body_hash: str) -> PromptResult:
    if stored.body_hash != body_hash:
        raise Conflict("another prompt was sent under this promptId")
    return msgspec.json.decode(stored.body, type=PromptResult)


def _hash(order: Prompt) -> str:
    said = encode([order.text, order.worker_id, order.role, order.image_ids, order.source])
    return hashlib.sha256(said).hexdigest()


def _sent(
    snapshot: Snapshot,
    item: QueueItem,
    worker: Worker,
    order: Prompt,
    given: PromptInputs,
) -> Change:
    """The item as a prompt, unless it was changed or taken back a moment ago."""
    found = next(prompts.sendable_items(snapshot, clock.now_ms()), None)
    if found is None or found[0] != item or found[1].id != worker.id:
        return Change()
    return orders.prompt(snapshot, worker.id, order, given, from_queue=True).change()


def _waking(snapshot: Snapshot, wish: QueueAdded) -> list[Draft]:
    """The next run of the agent the message is for, when it has ended."""
    worker = snapshot.worker(wish.worker_id) if wish.worker_id else snapshot.primary
    if worker is None or worker.state not in (WorkerState.EXITED, WorkerState.FAILED):
        return []
    return [commands.restart_worker(snapshot, worker.id)]


def _failed(snapshot: Snapshot, fact: QueueFailed) -> Change:
    waits = any(item.id == fact.id for item in snapshot.queue.items)
    return Change(drafts=[Draft(fact)] if waits else [])
