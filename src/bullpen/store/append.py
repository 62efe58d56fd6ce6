"""What goes into the database in one piece when something happens in a session."""

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
        """The whole of it as it goes to a client."""
        return splice_event(self.event, self.data)


class OutboxLine(Struct, frozen=True):
    """A line to the child of a worker; made from its number, which is given in the transaction."""

    worker_id: str
    run: int
    make: Callable[[int], bytes]


class Consumed(Struct, frozen=True):
    """How far a worker's output has been read, with all that followed from it stored."""

    worker_id: str
    run: int
    offset: int


class StoredAnswer(Struct, frozen=True):
    """What a request was answered; given again when the same request comes again."""

    key: str
    body_hash: str
    status: int
    body: bytes


class AlreadyAnswered(Conflict):
    """The key of the request is taken: `answer` is what was said the first time."""

    def __init__(self, answer: StoredAnswer) -> None:
        super().__init__("a request with this Idempotency-Key was answered before")
        self.answer = answer


class Append(Struct, frozen=True, kw_only=True):
    """Events of one session with everything that must be true when, and only when, they are stored."""

    before: Snapshot
    snapshot: Snapshot  # what the entries make of it
    entries: Sequence[EventEntry] = ()
    outbox: Sequence[OutboxLine] = ()
    consumed: Consumed | None = None
    answer: StoredAnswer | None = None

    @property
    def empty(self) -> bool:
        return not (self.entries or self.outbox or self.consumed or self.answer)
