"""The message queue of a session (R54): its facts, what they add up to, and the orders it takes.

An item leaves in the very change that records its prompt, so that a crash can neither lose nor double it.
Names are those of R54.
"""

from collections.abc import Iterable

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import asdict, replace

from .conversation import ForwardedFrom
from .errors import Conflict, EmptyMessage, Invalid, NotFound, QueueFull
from .events import Draft, Fact
from .titles import short_title

DIRECTIONS = ("up", "down")


class QueueAdded(Fact, frozen=True, kw_only=True):
    """`urgent`: it goes first, and neither a pause nor a delay holds it."""

    id: str
    message: str
    image_ids: tuple[str, ...] = ()
    client_id: str | None = None
    worker_id: str | None = None
    title: str | None = None
    scheduled_time: int | None = None
    urgent: bool = False
    origin: ForwardedFrom | UnsetType = field(default=UNSET, name="from")


class QueueEdited(Fact, frozen=True, kw_only=True):
    """What is left out stays; a title that was made for the old words goes with them."""

    id: str
    message: str
    title: str | UnsetType | None = UNSET
    scheduled_time: int | UnsetType | None = UNSET


class QueueTitled(Fact, frozen=True, kw_only=True):
    """A title that was made for it."""

    id: str
    title: str


class QueueMoved(Fact, frozen=True, kw_only=True):
    """One place up or down; `front` is before all others, and urgent."""

    id: str
    direction: str


class QueueRemoved(Fact, frozen=True, kw_only=True):
    id: str


class QueueCleared(Fact, frozen=True, kw_only=True):
    pass


class QueueSending(Fact, frozen=True, kw_only=True):
    id: str


class QueueSent(Fact, frozen=True, kw_only=True):
    id: str


class QueueFailed(Fact, frozen=True, kw_only=True):
    id: str
    error: str


class QueuePaused(Fact, frozen=True, kw_only=True):
    why: str


class QueueResumed(Fact, frozen=True, kw_only=True):
    pass


class QueueConfigured(Fact, frozen=True, kw_only=True):
    enabled: bool
    delay_seconds: float
    max_size: int
    auto_generate_titles: bool
    inherited: bool = False  # they are those of the repository, or of the house


class QueueItem(Struct, frozen=True, kw_only=True):
    id: str
    message: str
    queued_at: int
    image_ids: tuple[str, ...] = ()
    client_id: str | None = None
    title: str | None = None
    own_title: bool = False  # given by a person: no other is made
    scheduled_time: int | None = None
    state: str = "queued"
    worker_id: str | None = None
    urgent: bool = False
    origin: ForwardedFrom | UnsetType = UNSET


class QueueSettings(Struct, frozen=True, kw_only=True):
    enabled: bool = True
    delay_seconds: float = 0
    max_size: int = 10
    auto_generate_titles: bool = True
    inherited: bool = True


class QueueOverrides(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody wants otherwise; None is as it was."""

    enabled: bool | None = None
    delay_seconds: float | None = None
    max_size: int | None = None
    auto_generate_titles: bool | None = None

    def over(self, settings: QueueSettings) -> QueueSettings:
        wanted = {name: value for name, value in asdict(self).items() if value is not None}
        return check_settings(replace(settings, **wanted))


class Queue(Struct, frozen=True, kw_only=True):
    """The items in the order they will be sent."""

    items: tuple[QueueItem, ...] = ()
    paused: bool = False
    settings: QueueSettings = QueueSettings()

    def item(self, item_id: str) -> QueueItem:
        for item in self.items:
            if item.id == item_id:
                return item
        raise NotFound(f"no message {item_id} in the queue")

    @property
    def waiting(self) -> bool:
        """Whether something is to be sent sooner or later."""
        return any(item.state == "queued" for item in self.items)


def fold_queue(queue: Queue, fact: Fact, now: int) -> Queue:  # noqa: PLR0911 (a table)
    """The queue after one more fact; facts of others leave it as it is."""
    if not fact.type.startswith("queue_"):
        return queue
    match fact:
        case QueueAdded():
            return replace(queue, items=_added(queue.items, _item(fact, now)))
        case QueueEdited():
            return replace(queue, items=tuple(_edited(item, fact) for item in queue.items))
        case QueueTitled():
            return replace(queue, items=tuple(_titled(item, fact) for item in queue.items))
        case QueueMoved():
            return replace(queue, items=_moved(queue.items, fact.id, fact.direction))
        case QueueRemoved() | QueueSent():
            return replace(queue, items=tuple(item for item in queue.items if item.id != fact.id))
        case QueueCleared():
            return replace(queue, items=(), paused=False)
        case QueueSending():
            return _with(queue, fact.id, state="sending")
        case QueueFailed():
            return _with(queue, fact.id, state="failed")
        case QueuePaused() | QueueResumed():
            return replace(queue, paused=isinstance(fact, QueuePaused))
        case QueueConfigured():
            return replace(queue, settings=QueueSettings(**asdict(fact)))
        case _:
            return queue


def enqueue(queue: Queue, wish: QueueAdded) -> Draft:
    """One more message, or the reason why not: it is empty, or there are too many."""
    check_message(wish.message, wish.image_ids)
    if not queue.settings.enabled:
        raise Conflict("the queue of this session is turned off")
    if len(queue.items) >= queue.settings.max_size:
        raise QueueFull(f"the queue holds {queue.settings.max_size} messages already; try again later")
    if any(item.id == wish.id for item in queue.items):
        raise Conflict(f"a message {wish.id} waits in the queue already")
    return Draft(wish)


def edit(queue: Queue, wish: QueueEdited) -> Draft:
    item = queue.item(wish.id)
    check_message(wish.message, item.image_ids)
    return Draft(wish)


def needs_title(queue: Queue, item: QueueItem) -> bool:
    return queue.settings.auto_generate_titles and item.title is None and item.state == "queued"


def title_by_words(item: QueueItem) -> Draft:
    return Draft(QueueTitled(id=item.id, title=short_title(item.message, len(item.image_ids))))


def move(queue: Queue, item_id: str, direction: str) -> list[Draft]:
    """One place; at the end of the way nothing happens."""
    queue.item(item_id)
    if direction not in DIRECTIONS:
        raise Invalid(f"a message moves up or down, not {direction}")
    if _moved(queue.items, item_id, direction) == queue.items:
        return []
    return [Draft(QueueMoved(id=item_id, direction=direction))]


def remove(queue: Queue, item_id: str) -> list[Draft]:
    queue.item(item_id)
    return [Draft(QueueRemoved(id=item_id))]


def clear(queue: Queue) -> list[Draft]:
    return [Draft(QueueCleared())] if queue.items or queue.paused else []


def hurry(queue: Queue, item_id: str) -> list[Draft]:
    """The message goes before all others, whether the queue is paused or not."""
    queue.item(item_id)
    return [Draft(QueueMoved(id=item_id, direction="front"))]


def pause(queue: Queue, why: str) -> list[Draft]:
    return [] if queue.paused else [Draft(QueuePaused(why=why))]


def resume(queue: Queue) -> list[Draft]:
    return [Draft(QueueResumed())] if queue.paused else []


def configure(queue: Queue, settings: QueueSettings) -> list[Draft]:
    if check_settings(settings) == queue.settings:
        return []
    return [Draft(QueueConfigured(**asdict(settings)))]


def inherit(queue: Queue, settings: QueueSettings) -> list[Draft]:
    """Takes over what the repository or the house wants, unless somebody wanted it otherwise here."""
    return configure(queue, settings) if queue.settings.inherited else []


def check_settings(settings: QueueSettings) -> QueueSettings:
    if not 1 <= settings.max_size <= 1000:
        raise Invalid("max_size is from 1 to 1000")
    if not 0 <= settings.delay_seconds <= 86_400:
        raise Invalid("delay_seconds is from 0 to 86400")
    return settings


def after_bad_turn(queue: Queue, why: str) -> list[Fact]:
    """A turn that failed or was cancelled pauses what waits; what is urgent was meant to follow it."""
    waits = [item for item in queue.items if item.state == "queued"]
    if not waits or queue.paused or waits[0].urgent:
        return []
    return [QueuePaused(why=why)]


def check_message(message: str, image_ids: Iterable[str]) -> None:
    if not message.strip() and not tuple(image_ids):
        raise EmptyMessage("a message must not be empty")


def _item(fact: QueueAdded, now: int) -> QueueItem:
    return QueueItem(
        id=fact.id,
        message=fact.message,
        queued_at=now,
        image_ids=fact.image_ids,
        client_id=fact.client_id,
        title=fact.title,
        own_title=fact.title is not None,
        scheduled_time=fact.scheduled_time,
        worker_id=fact.worker_id,
        urgent=fact.urgent,
        origin=fact.origin,
    )


def _added(items: tuple[QueueItem, ...], new: QueueItem) -> tuple[QueueItem, ...]:
    return (new, *items) if new.urgent else (*items, new)


def _moved(items: tuple[QueueItem, ...], item_id: str, direction: str) -> tuple[QueueItem, ...]:
    at = next((place for place, item in enumerate(items) if item.id == item_id), None)
    if at is None:
        return items
    rest = [item for item in items if item.id != item_id]
    if direction == "front":
        return (replace(items[at], urgent=True, state="queued"), *rest)
    to = min(max(0, at - 1 if direction == "up" else at + 1), len(rest))
    return (*rest[:to], items[at], *rest[to:])


def _edited(item: QueueItem, fact: QueueEdited) -> QueueItem:
    if item.id != fact.id:
        return item
    if fact.message != item.message and not item.own_title:
        item = replace(item, title=None)
    if fact.title is not UNSET:
        item = replace(item, title=fact.title, own_title=fact.title is not None)
    if fact.scheduled_time is not UNSET:
        item = replace(item, scheduled_time=fact.scheduled_time)
    return replace(item, message=fact.message, state="queued")


def _titled(item: QueueItem, fact: QueueTitled) -> QueueItem:
    return replace(item, title=fact.title) if item.id == fact.id and not item.own_title else item


def _with(queue: Queue, item_id: str, **changes: str) -> Queue:
    items = tuple(replace(item, **changes) if item.id == item_id else item for item in queue.items)
    return replace(queue, items=items)
