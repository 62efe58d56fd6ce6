"""A change of a session: the events, outbox lines and answer that a decision produces, and its outcome."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from ..domain.events import Draft, Event
from ..domain.snapshot import Snapshot
from ..store.append import Consumed, OutboxLine
from ..store.outbox import Numbers


class RequestAnswer(Struct, frozen=True):
    """The answer to the request that caused a change of a session, stored with it.

    `render` makes status and body from the snapshot after the change.
    """

    key: str
    body_hash: str
    render: Callable[[Snapshot], tuple[int, bytes]]


class Change(Struct, frozen=True, kw_only=True):
    """Everything that one decision about a session stores in one transaction.

    An empty change stores nothing.
    """

    drafts: Sequence[Draft] = ()
    outbox: Sequence[OutboxLine] = ()
    consumed: Consumed | None = None
    answer: RequestAnswer | None = None


class CommittedChange(Struct, frozen=True):
    """A stored change: its events, the numbers of its outbox lines, and the session after it."""

    events: Sequence[Event]
    outbox: Numbers
    snapshot: Snapshot
