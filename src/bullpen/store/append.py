"""Values that are stored together in one transaction when something happens in a session."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from ..domain.errors import Conflict
from ..domain.events import Event
from ..domain.snapshot import Snapshot
from ..wire.browser import splice_event


class EventEntry(Struct, frozen=True, gc=False):
    """A numbered event and its data as JSON."""

    event: Event
    data: bytes

    def wire(self) -> bytes:
        """Return the whole event as JSON."""
        return splice_event(self.event, self.data)


class OutboxLine(Struct, frozen=True):
    """A line to a worker's child process.

    `make` returns its bytes for the number it gets in the transaction.
    """

    worker_id: str
    run: int
    make: Callable[[int], bytes]


class ConsumedOffset(Struct, frozen=True):
    """The offset up to which a worker's output has been read and its effects have been stored."""

    worker_id: str
    run: int
    offset: int


class StoredAnswer(Struct, frozen=True):
    """The stored answer of a request; it is sent again if the request is repeated."""

    key: str
    body_hash: str
    status: int
    body: bytes


class AlreadyAnswered(Conflict):
    """The idempotency key has been used; `answer` is the first answer."""

    def __init__(self, answer: StoredAnswer) -> None:
        super().__init__("a request with this Idempotency-Key was answered before")
        self.answer = answer


class Append(Struct, frozen=True, kw_only=True):
    """The new events of one session, and everything that is stored together with them."""

    before: Snapshot
    snapshot: Snapshot  # after the entries
    entries: Sequence[EventEntry] = ()
    outbox: Sequence[OutboxLine] = ()
    consumed: ConsumedOffset | None = None
    answer: StoredAnswer | None = None

    @property
    def empty(self) -> bool:
        """Whether the append has nothing to store."""
        return not (self.entries or self.outbox or self.consumed or self.answer)
