"""Decide where a prompt goes: to the agent now, into the queue, or in place of the running turn."""

from collections.abc import Iterator
from enum import Enum

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from .commands import require_active
from .conversation import ForwardedFrom
from .errors import Conflict, Invalid, NotFound
from .queue import QueueItem, check_message
from .snapshot import Snapshot, Worker
from .states import Activity, WorkerState

BUSY_ACTIONS = ("queue", "reject", "interrupt")


class ForwardableContent(Struct, frozen=True):
    """Content that a prompt can forward: its heading, and the error message if there is no such content."""

    heading: str
    empty: str


FORWARDABLE = {
    "answer": ForwardableContent(
        "The last answer of {role}:", "the agent in role {role} has not answered anything yet"
    ),
    "diff": ForwardableContent(
        "What has changed in the workspace of {role}:", "nothing has changed in the workspace of {role}"
    ),
}


class ForwardSource(Struct, frozen=True, kw_only=True):
    """The worker whose last answer or changes a prompt asks to forward."""

    worker_id: str | None = None
    role: str | None = None
    what: str = "answer"


class Prompt(Struct, frozen=True, kw_only=True):
    """A user's message to an agent: the named one, or the first agent of the session."""

    text: str
    prompt_id: str
    worker_id: str | None = None
    role: str | None = None
    image_ids: tuple[str, ...] = ()
    busy: str = "queue"
    sender: str | None = None
    source: ForwardSource | None = None
    origin: ForwardedFrom | UnsetType = UNSET  # set once the forwarded content is part of the text


class PromptResult(Struct, frozen=True, rename="camel"):
    """The outcome of a prompt. `seq` is the number of the event that records it."""

    prompt_id: str
    seq: int
    queued: bool


class PromptRoute(Enum):
    """Where a prompt goes."""

    SEND = "send"
    QUEUE = "queue"
    INTERRUPT = "interrupt"


def route_prompt(snapshot: Snapshot, order: Prompt, now: int) -> PromptRoute:
    """Return where the prompt goes now; raise Conflict if it cannot be accepted, Invalid if it is wrong."""
    require_active(snapshot)
    check_message(order.text, order.image_ids)
    if order.busy not in BUSY_ACTIONS:
        raise Invalid(f"busy is one of {', '.join(BUSY_ACTIONS)}, not {order.busy}")
    worker = find_addressee(snapshot, order.worker_id, order.role)
    if worker is None or worker.state is WorkerState.SPAWNING:
        return PromptRoute.QUEUE
    if not worker.alive:
        raise Conflict(f"the agent in role {worker.role} is {worker.state}; restart it first")
    if accepts_prompt(snapshot, worker) and not _is_behind_others(snapshot, worker, now):
        return PromptRoute.SEND
    match order.busy:
        case "reject":
            raise Conflict(f"the agent in role {worker.role} is busy")
        case "interrupt":
            return PromptRoute.INTERRUPT
        case _:
            return PromptRoute.QUEUE


def find_addressee(snapshot: Snapshot, worker_id: str | None, role: str | None) -> Worker | None:
    """Return the agent that a request names, else the first agent; None if the session has no agent.

    Raise NotFound for an unknown role, and Conflict if the named worker is not an agent.
    """
    if worker_id is not None:
        worker = snapshot.worker(worker_id)
    elif role is not None:
        holder = snapshot.worker_in_role(role)
        if holder is None:
            raise NotFound(f"no worker has the role {role}")
        worker = holder
    else:
        return snapshot.primary
    if worker.type != "agent":
        raise Conflict(f"the worker in role {worker.role} is a {worker.type}, not an agent")
    return worker


def resolve_source(snapshot: Snapshot, source: ForwardSource) -> ForwardedFrom:
    """Return the agent that a forward source names; it may have ended.

    Raise Invalid if the source names no agent, and NotFound if the session does not have the named one.
    """
    if source.what not in FORWARDABLE:
        raise Invalid(f"what is passed on is one of {', '.join(FORWARDABLE)}, not {source.what}")
    if source.worker_id is None and source.role is None:
        raise Invalid("from names a workerId or a role")
    worker = find_addressee(snapshot, source.worker_id, source.role)
    assert worker is not None  # it was named
    return ForwardedFrom(worker_id=worker.id, role=worker.role, what=source.what)


def with_forwarded_text(order: Prompt, origin: ForwardedFrom, content: str) -> Prompt:
    """Return the prompt with content of another worker appended; raise Conflict if the content is empty."""
    forwardable = FORWARDABLE[origin.what]
    if not content.strip():
        raise Conflict(forwardable.empty.format(role=origin.role))
    forwarded = f"{forwardable.heading.format(role=origin.role)}\n\n{content}"
    text = f"{order.text}\n\n{forwarded}" if order.text.strip() else forwarded
    return replace(order, text=text, origin=origin)


def accepts_prompt(snapshot: Snapshot, worker: Worker) -> bool:
    """Return whether the agent can be prompted now: agents handle one prompt at a time."""
    conversation = snapshot.conversations.get(worker.id)
    if worker.state is not WorkerState.ACTIVE or conversation is None or conversation.turn is not None:
        return False
    return worker.activity is Activity.IDLE if worker.is_typed_to else conversation.acp_session_id is not None


def sendable_items(snapshot: Snapshot, now: int) -> Iterator[tuple[QueueItem, Worker]]:
    """Yield the queue items to send now, at most one per agent. A scheduled item blocks no later one."""
    queue, served = snapshot.queue, set[str]()
    for item in queue.items:
        worker = item_addressee(snapshot, item)
        if worker is None or worker.id in served or item.state != "queued" or is_scheduled_later(item, now):
            continue
        when = due_time(snapshot, item, worker, now)
        if accepts_prompt(snapshot, worker) and when is not None and when <= now:
            yield item, worker
        served.add(worker.id)


def due_time(snapshot: Snapshot, item: QueueItem, worker: Worker, now: int) -> int | None:
    """Return when an item may be sent to its idle agent, in milliseconds; None if the queue is paused.

    The configured delay counts from when the agent became idle.
    """
    if item.urgent:
        return 0
    if snapshot.queue.paused:
        return None
    delay = round(snapshot.queue.settings.delay_seconds * 1000)
    # If the clock was set back, the time of becoming idle lies in the future; the delay is then skipped.
    delayed = worker.activity_since + delay if worker.activity_since - now <= delay else 0
    return max(delayed if delay else 0, item.scheduled_time or 0)


def next_due_time(snapshot: Snapshot, now: int) -> int | None:
    """Return the earliest future time at which a queued item becomes sendable; None if there is none."""
    times = []
    for item in snapshot.queue.items:
        worker = item_addressee(snapshot, item)
        if worker is not None and item.state == "queued" and accepts_prompt(snapshot, worker):
            when = due_time(snapshot, item, worker, now)
            if when is not None and when > now:
                times.append(when)
    return min(times, default=None)


def item_addressee(snapshot: Snapshot, item: QueueItem) -> Worker | None:
    """Return the agent a queue item is for, or None if it was removed or does not exist yet."""
    return snapshot.workers.get(item.worker_id) if item.worker_id else snapshot.primary


def is_scheduled_later(item: QueueItem, now: int) -> bool:
    """Return whether the item is scheduled for a later time."""
    return not item.urgent and (item.scheduled_time or 0) > now


def _is_behind_others(snapshot: Snapshot, worker: Worker, now: int) -> bool:
    """Return whether earlier items that are not held back wait for the same agent."""
    return not snapshot.queue.paused and any(
        item.state == "queued"
        and not is_scheduled_later(item, now)
        and item_addressee(snapshot, item) == worker
        for item in snapshot.queue.items
    )
