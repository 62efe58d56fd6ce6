"""Where a prompt goes: to the agent at once, into the queue, or in the place of what runs now."""

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

BUSY = ("queue", "reject", "interrupt")


class ForwardableContent(Struct, frozen=True):
    """What can be passed on: how it is introduced, and what is said when there is none."""

    heading: str
    nothing: str


PASSABLE = {
    "answer": ForwardableContent(
        "The last answer of {role}:", "the agent in role {role} has not answered anything yet"
    ),
    "diff": ForwardableContent(
        "What has changed in the workspace of {role}:", "nothing has changed in the workspace of {role}"
    ),
}


class ForwardSource(Struct, frozen=True, kw_only=True):
    """Whose words or changes are to be passed on."""

    worker_id: str | None = None
    role: str | None = None
    what: str = "answer"


class Prompt(Struct, frozen=True, kw_only=True):
    """What a person says to an agent: the one named, else the first of the session."""

    text: str
    prompt_id: str
    worker_id: str | None = None
    role: str | None = None
    image_ids: tuple[str, ...] = ()
    busy: str = "queue"
    sender: str | None = None
    source: ForwardSource | None = None
    origin: ForwardedFrom | UnsetType = UNSET  # once the source's words are in the text


class PromptResult(Struct, frozen=True, rename="camel"):
    """What became of a prompt; `seq` is that of the event that tells of it."""

    prompt_id: str
    seq: int
    queued: bool


class PromptRoute(Enum):
    """What is done with a prompt."""

    SEND = "send"
    QUEUE = "queue"
    INTERRUPT = "interrupt"


def place(snapshot: Snapshot, order: Prompt, now: int) -> PromptRoute:
    """Where the prompt goes now; a Conflict when it must not."""
    require_active(snapshot)
    check_message(order.text, order.image_ids)
    if order.busy not in BUSY:
        raise Invalid(f"busy is one of {', '.join(BUSY)}, not {order.busy}")
    worker = addressee(snapshot, order.worker_id, order.role)
    if worker is None or worker.state is WorkerState.SPAWNING:
        return PromptRoute.QUEUE
    if not worker.alive:
        raise Conflict(f"the agent in role {worker.role} is {worker.state}; restart it first")
    if is_free(snapshot, worker) and not _others_first(snapshot, worker, now):
        return PromptRoute.SEND
    match order.busy:
        case "reject":
            raise Conflict(f"the agent in role {worker.role} is busy")
        case "interrupt":
            return PromptRoute.INTERRUPT
        case _:
            return PromptRoute.QUEUE


def addressee(snapshot: Snapshot, worker_id: str | None, role: str | None) -> Worker | None:
    """The agent that is meant; None when the session has none yet and none was named."""
    if worker_id is not None:
        worker = snapshot.worker(worker_id)
    elif role is not None:
        holder = snapshot.in_role(role)
        if holder is None:
            raise NotFound(f"nobody holds the role {role}")
        worker = holder
    else:
        return snapshot.primary
    if worker.type != "agent":
        raise Conflict(f"the worker in role {worker.role} is a {worker.type}, not an agent")
    return worker


def origin_of(snapshot: Snapshot, source: ForwardSource) -> ForwardedFrom:
    """The agent that is meant; one that has ended has its say still."""
    if source.what not in PASSABLE:
        raise Invalid(f"what is passed on is one of {', '.join(PASSABLE)}, not {source.what}")
    if source.worker_id is None and source.role is None:
        raise Invalid("from names a workerId or a role")
    worker = addressee(snapshot, source.worker_id, source.role)
    assert worker is not None  # it was named
    return ForwardedFrom(worker_id=worker.id, role=worker.role, what=source.what)


def passing_on(order: Prompt, origin: ForwardedFrom, words: str) -> Prompt:
    """The prompt with what comes from another worker, after what the person says of it."""
    passable = PASSABLE[origin.what]
    if not words.strip():
        raise Conflict(passable.nothing.format(role=origin.role))
    said = f"{passable.heading.format(role=origin.role)}\n\n{words}"
    text = f"{order.text}\n\n{said}" if order.text.strip() else said
    return replace(order, text=text, origin=origin)


def is_free(snapshot: Snapshot, worker: Worker) -> bool:
    """Whether the agent can be prompted at this moment: agents bear only one prompt at a time."""
    conversation = snapshot.conversations.get(worker.id)
    if worker.state is not WorkerState.ACTIVE or conversation is None or conversation.turn is not None:
        return False
    return worker.activity is Activity.IDLE if worker.is_typed_to else conversation.acp_session_id is not None


def sendable(snapshot: Snapshot, now: int) -> Iterator[tuple[QueueItem, Worker]]:
    """The items to be sent now, at most one for each agent; what is for later lets the others by."""
    queue, taken = snapshot.queue, set[str]()
    for item in queue.items:
        worker = addressee_of(snapshot, item)
        if worker is None or worker.id in taken or item.state != "queued" or is_for_later(item, now):
            continue
        when = due(snapshot, item, worker, now)
        if is_free(snapshot, worker) and when is not None and when <= now:
            yield item, worker
        taken.add(worker.id)


def due(snapshot: Snapshot, item: QueueItem, worker: Worker, now: int) -> int | None:
    """When an item may go to its free agent; a delay counts from when that came to rest. None: it is held."""
    if item.urgent:
        return 0
    if snapshot.queue.paused:
        return None
    delay = round(snapshot.queue.settings.delay_seconds * 1000)
    # A clock that was set back cannot tell how long it has rested: nothing waits until that time comes again.
    delayed = worker.activity_since + delay if worker.activity_since - now <= delay else 0
    return max(delayed if delay else 0, item.scheduled_time or 0)


def next_due(snapshot: Snapshot, now: int) -> int | None:
    """When to look again for something to send, if time alone brings it."""
    times = []
    for item in snapshot.queue.items:
        worker = addressee_of(snapshot, item)
        if worker is not None and item.state == "queued" and is_free(snapshot, worker):
            when = due(snapshot, item, worker, now)
            if when is not None and when > now:
                times.append(when)
    return min(times, default=None)


def addressee_of(snapshot: Snapshot, item: QueueItem) -> Worker | None:
    """The agent an item waits for; None when it is gone, or there is none yet."""
    return snapshot.workers.get(item.worker_id) if item.worker_id else snapshot.primary


def is_for_later(item: QueueItem, now: int) -> bool:
    return not item.urgent and (item.scheduled_time or 0) > now


def _others_first(snapshot: Snapshot, worker: Worker, now: int) -> bool:
    """Whether messages wait for the same agent that came before and are not held."""
    return not snapshot.queue.paused and any(
        item.state == "queued" and not is_for_later(item, now) and addressee_of(snapshot, item) == worker
        for item in snapshot.queue.items
    )
