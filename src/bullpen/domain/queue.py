"""The message queue of a session: its facts, its state as a fold of them, and the commands that change it.

The event that takes an item out of the queue is part of the same change as the event of its prompt, so that a
crash can neither lose nor send it twice. The names are part of the protocol.
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
    """A message entered the queue. An `urgent` one goes first; neither a pause nor a delay holds it back."""

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
    """A user changed a message. UNSET fields stay; a generated title is dropped when the text changes."""

    id: str
    message: str
    title: str | UnsetType | None = UNSET
    scheduled_time: int | UnsetType | None = UNSET


class QueueTitled(Fact, frozen=True, kw_only=True):
    """A title was generated for a message."""

    id: str
    title: str


class QueueMoved(Fact, frozen=True, kw_only=True):
    """A message moved `up` or `down` by one place, or to the `front`, where it is urgent."""

    id: str
    direction: str


class QueueRemoved(Fact, frozen=True, kw_only=True):
    """A user removed a message."""

    id: str


class QueueCleared(Fact, frozen=True, kw_only=True):
    """A user removed all messages."""


class QueueSending(Fact, frozen=True, kw_only=True):
    """A message is being sent to its agent."""

    id: str


class QueueSent(Fact, frozen=True, kw_only=True):
    """A message was sent and left the queue."""

    id: str


class QueueFailed(Fact, frozen=True, kw_only=True):
    """A message could not be sent and stays in the queue."""

    id: str
    error: str


class QueuePaused(Fact, frozen=True, kw_only=True):
    """The queue stopped sending."""

    why: str


class QueueResumed(Fact, frozen=True, kw_only=True):
    """The queue sends again."""


class QueueConfigured(Fact, frozen=True, kw_only=True):
    """The settings of the queue changed."""

    enabled: bool
    delay_seconds: float
    max_size: int
    auto_generate_titles: bool
    inherited: bool = False  # they are the settings of the repository or the server


class QueueItem(Struct, frozen=True, kw_only=True):
    """A message that waits in the queue."""

    id: str
    message: str
    queued_at: int
    image_ids: tuple[str, ...] = ()
    client_id: str | None = None
    title: str | None = None
    own_title: bool = False  # a user chose the title, so that none is generated
    scheduled_time: int | None = None
    state: str = "queued"
    worker_id: str | None = None
    urgent: bool = False
    origin: ForwardedFrom | UnsetType = UNSET


class QueueSettings(Struct, frozen=True, kw_only=True):
    """The settings of a queue. `inherited`: they follow those of the repository or the server."""

    enabled: bool = True
    delay_seconds: float = 0
    max_size: int = 10
    auto_generate_titles: bool = True
    inherited: bool = True


class QueueOverrides(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings that differ from the inherited ones; None inherits the value."""

    enabled: bool | None = None
    delay_seconds: float | None = None
    max_size: int | None = None
    auto_generate_titles: bool | None = None

    def over(self, settings: QueueSettings) -> QueueSettings:
        """Return the settings with these overrides applied."""
        overrides = {name: value for name, value in asdict(self).items() if value is not None}
        return check_settings(replace(settings, **overrides))


class Queue(Struct, frozen=True, kw_only=True):
    """The queue of a session: its items in the order in which they are sent, and its settings."""

    items: tuple[QueueItem, ...] = ()
    paused: bool = False
    settings: QueueSettings = QueueSettings()

    def item(self, item_id: str) -> QueueItem:
        """Return the queued message, or raise NotFound."""
        for item in self.items:
            if item.id == item_id:
                return item
        raise NotFound(f"no message {item_id} in the queue")

    @property
    def waiting(self) -> bool:
        """Whether a message waits to be sent."""
        return any(item.state == "queued" for item in self.items)


def fold_queue(queue: Queue, fact: Fact, now: int) -> Queue:  # noqa: PLR0911 (a table)
    """Return the queue after one more fact. Facts that do not concern the queue leave it unchanged."""
    if not fact.type.startswith("queue_"):
        return queue
    match fact:
        case QueueAdded():
            return replace(queue, items=_items_with(queue.items, _item(fact, now)))
        case QueueEdited():
            return replace(queue, items=tuple(_edited_item(item, fact) for item in queue.items))
        case QueueTitled():
            return replace(queue, items=tuple(_titled_item(item, fact) for item in queue.items))
        case QueueMoved():
            return replace(queue, items=_items_moved(queue.items, fact.id, fact.direction))
        case QueueRemoved() | QueueSent():
            return replace(queue, items=tuple(item for item in queue.items if item.id != fact.id))
        case QueueCleared():
            return replace(queue, items=(), paused=False)
        case QueueSending():
            return _with_item_changed(queue, fact.id, state="sending")
        case QueueFailed():
            return _with_item_changed(queue, fact.id, state="failed")
        case QueuePaused() | QueueResumed():
            return replace(queue, paused=isinstance(fact, QueuePaused))
        case QueueConfigured():
            return replace(queue, settings=QueueSettings(**asdict(fact)))
        case _:
            return queue


def enqueue(queue: Queue, added: QueueAdded) -> Draft:
    """Return the draft that adds a message; raise if it is empty or the queue is full or turned off."""
    check_message(added.message, added.image_ids)
    if not queue.settings.enabled:
        raise Conflict("the queue of this session is turned off")
    if len(queue.items) >= queue.settings.max_size:
        raise QueueFull(f"the queue is full, its limit is {queue.settings.max_size}; try again later")
    if any(item.id == added.id for item in queue.items):
        raise Conflict(f"a message {added.id} waits in the queue already")
    return Draft(added)


def edit(queue: Queue, edited: QueueEdited) -> Draft:
    """Return the draft that edits a queued message; raise NotFound if it was sent or removed."""
    item = queue.item(edited.id)
    check_message(edited.message, item.image_ids)
    return Draft(edited)


def needs_title(queue: Queue, item: QueueItem) -> bool:
    """Return whether a title should be generated for the queued message."""
    return queue.settings.auto_generate_titles and item.title is None and item.state == "queued"


def default_title(item: QueueItem) -> Draft:
    """Return the draft that titles a queued message with its first words."""
    return Draft(QueueTitled(id=item.id, title=short_title(item.message, len(item.image_ids))))


def move(queue: Queue, item_id: str, direction: str) -> list[Draft]:
    """Return the draft that moves a message one place `up` or `down`; none if it is at that end.

    Raise Invalid for another direction.
    """
    queue.item(item_id)
    if direction not in DIRECTIONS:
        raise Invalid(f"a message moves up or down, not {direction}")
    if _items_moved(queue.items, item_id, direction) == queue.items:
        return []
    return [Draft(QueueMoved(id=item_id, direction=direction))]


def remove(queue: Queue, item_id: str) -> list[Draft]:
    """Return the draft that removes a queued message, or raise NotFound."""
    queue.item(item_id)
    return [Draft(QueueRemoved(id=item_id))]


def clear(queue: Queue) -> list[Draft]:
    """Return the draft that empties the queue and ends a pause; none if there is nothing to do."""
    return [Draft(QueueCleared())] if queue.items or queue.paused else []


def move_to_front(queue: Queue, item_id: str) -> list[Draft]:
    """Return the draft that makes a queued message urgent: sent first, also while the queue is paused."""
    queue.item(item_id)
    return [Draft(QueueMoved(id=item_id, direction="front"))]


def pause(queue: Queue, why: str) -> list[Draft]:
    """Return the draft that pauses the queue; none if it is paused already."""
    return [] if queue.paused else [Draft(QueuePaused(why=why))]


def resume(queue: Queue) -> list[Draft]:
    """Return the draft that ends a pause; none if the queue is not paused."""
    return [Draft(QueueResumed())] if queue.paused else []


def configure(queue: Queue, settings: QueueSettings) -> list[Draft]:
    """Return the draft that changes the settings; none if they are the same already."""
    if check_settings(settings) == queue.settings:
        return []
    return [Draft(QueueConfigured(**asdict(settings)))]


def inherit_settings(queue: Queue, settings: QueueSettings) -> list[Draft]:
    """Return the draft that takes over inherited settings; none if this queue has settings of its own."""
    return configure(queue, settings) if queue.settings.inherited else []


def check_settings(settings: QueueSettings) -> QueueSettings:
    """Return the queue settings, or raise Invalid if a value is out of range."""
    if not 1 <= settings.max_size <= 1000:
        raise Invalid("max_size is from 1 to 1000")
    if not 0 <= settings.delay_seconds <= 86_400:
        raise Invalid("delay_seconds is from 0 to 86400")
    return settings


def pause_after_failed_turn(queue: Queue, why: str) -> list[Fact]:
    """Return a fact that pauses the queue after a failed or cancelled turn, if messages wait.

    An urgent message is not paused: it was meant to follow that turn.
    """
    waiting = [item for item in queue.items if item.state == "queued"]
    if not waiting or queue.paused or waiting[0].urgent:
        return []
    return [QueuePaused(why=why)]


def check_message(message: str, image_ids: Iterable[str]) -> None:
    """Raise EmptyMessage if a message has neither text nor images."""
    if not message.strip() and not tuple(image_ids):
        raise EmptyMessage("a message must not be empty")


def _item(fact: QueueAdded, now: int) -> QueueItem:
    """Return the queue item that the fact adds."""
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


def _items_with(items: tuple[QueueItem, ...], new: QueueItem) -> tuple[QueueItem, ...]:
    """Return the items with a new one: first if it is urgent, else last."""
    return (new, *items) if new.urgent else (*items, new)


def _items_moved(items: tuple[QueueItem, ...], item_id: str, direction: str) -> tuple[QueueItem, ...]:
    """Return the items with one moved up or down, or to the front, where it becomes urgent."""
    index = next((index for index, item in enumerate(items) if item.id == item_id), None)
    if index is None:
        return items
    others = [item for item in items if item.id != item_id]
    if direction == "front":
        return (replace(items[index], urgent=True, state="queued"), *others)
    target = min(max(0, index - 1 if direction == "up" else index + 1), len(others))
    return (*others[:target], items[index], *others[target:])


def _edited_item(item: QueueItem, fact: QueueEdited) -> QueueItem:
    """Return the item after an edit, if the edit is about it.

    The item is `queued` again. A generated title is dropped when the text changes.
    """
    if item.id != fact.id:
        return item
    if fact.message != item.message and not item.own_title:
        item = replace(item, title=None)
    if fact.title is not UNSET:
        item = replace(item, title=fact.title, own_title=fact.title is not None)
    if fact.scheduled_time is not UNSET:
        item = replace(item, scheduled_time=fact.scheduled_time)
    return replace(item, message=fact.message, state="queued")


def _titled_item(item: QueueItem, fact: QueueTitled) -> QueueItem:
    """Return the item with a generated title, unless a user chose one."""
    return replace(item, title=fact.title) if item.id == fact.id and not item.own_title else item


def _with_item_changed(queue: Queue, item_id: str, **changes: str) -> Queue:
    """Return the queue with other field values in one item."""
    items = tuple(replace(item, **changes) if item.id == item_id else item for item in queue.items)
    return replace(queue, items=items)
