"""A change of a session: the events, outbox lines and answer that a decision produces, and its outcome."""

from collections.abc import Sequence

from msgspec import Struct

from ..domain.events import Draft, Event
from ..domain.snapshot import Snapshot
from ..store.answers import PendingAnswer
from ..store.append import ConsumedOffset, OutboxLine
from ..store.outbox import Numbers


class Change(Struct, frozen=True, kw_only=True):
    """Everything that one decision about a session stores in one transaction.

    An empty change stores nothing.
    """

    drafts: Sequence[Draft] = ()
    outbox: Sequence[OutboxLine] = ()
    consumed: ConsumedOffset | None = None
    answer: PendingAnswer[Snapshot] | None = None


class CommittedChange(Struct, frozen=True):
    """A stored change: its events, the numbers of its outbox lines, and the session after it."""

    events: Sequence[Event]
    outbox: Numbers
    snapshot: Snapshot
