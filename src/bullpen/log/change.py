"""What a decision comes to, and what became of it."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from ..domain.events import Draft, Event
from ..domain.snapshot import Snapshot
from ..store.append import Consumed, OutboxLine
from ..store.outbox import Numbers


class RequestAnswer(Struct, frozen=True):
    """What the request behind a change is answered, stored with it; `render` sees the snapshot afterwards."""

    key: str
    body_hash: str
    render: Callable[[Snapshot], tuple[int, bytes]]


class Change(Struct, frozen=True, kw_only=True):
    """Everything that becomes true together, or not at all. Nothing in it: nothing happens."""

    drafts: Sequence[Draft] = ()
    outbox: Sequence[OutboxLine] = ()
    consumed: Consumed | None = None
    answer: RequestAnswer | None = None


class CommittedChange(Struct, frozen=True):
    """A change that is stored: its events, the numbers of its outbox lines, the session afterwards."""

    events: Sequence[Event]
    outbox: Numbers
    snapshot: Snapshot
