"""The log of one session: the only place that gives out numbers.

A change is decided on the snapshot, numbered, folded, stored, and only then true: whoever reads
`snapshot` or follows never sees what a crash could take back.
"""

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from .. import clock
from ..domain.errors import Invalid, NotFound
from ..domain.events import Draft, Event, SessionStart
from ..domain.snapshot import Snapshot, fold
from ..store.append import AlreadyAnswered, Append, Consumed, OutboxLine, StoredAnswer
from ..store.events import EventStore
from .change import Change, CommittedChange, RequestAnswer
from .change_queue import ChangeQueue
from .entries import storable_entry
from .follow import EventBatch, GrowthSignal, LogFollower, PacedGrowthSignal
from .tail import EventTail

__all__ = [
    "AlreadyAnswered",
    "Change",
    "CommittedChange",
    "Consumed",
    "OutboxLine",
    "RequestAnswer",
    "SessionLog",
]

PAGE = 1000
PAGE_BYTES = 256 * 1024  # every follower who does not keep up holds one page, several times over
FAR_BEHIND = 10_000

Decide = Callable[[Snapshot], Change]

# Two logs of one session would give out the same number twice.
_open: WeakKeyDictionary[EventStore, WeakValueDictionary[str, "SessionLog"]] = WeakKeyDictionary()


class SessionLog:
    """`snapshot` is the session as it is stored; `on_commit` is called with each new one, in order."""

    def __init__(self, store: EventStore, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.closed = False
        self.on_commit: Callable[[Snapshot], None] | None = None
        self.news = GrowthSignal(snapshot.last_seq)
        self._followers: WeakSet[LogFollower] = WeakSet()
        self.paced_news: GrowthSignal = PacedGrowthSignal(snapshot.last_seq, self._followers)
        self._store = store
        self._turns = ChangeQueue(store, self._accept)
        self._tail = EventTail(snapshot.last_seq)
        self._shared: tuple[tuple[int, int], EventBatch] | None = None

    @classmethod
    async def create(
        cls, store: EventStore, session_id: str, drafts: Sequence[Draft], answer: RequestAnswer | None = None
    ) -> "SessionLog":
        """A new session; its first fact says where it lives."""
        if not drafts or not isinstance(drafts[0].fact, SessionStart):
            raise Invalid("a session begins with session_start")
        log = cls(store, Snapshot(id=session_id))
        await log.change(lambda _: Change(drafts=drafts, answer=answer))
        _opened(store)[session_id] = log
        return log

    @classmethod
    async def open(cls, store: EventStore, session_id: str) -> "SessionLog":
        """The log of a session that exists; the same object as long as anybody holds it."""
        snapshot = await store.load(session_id)
        log = _opened(store).get(session_id)
        if log is None or log.closed:
            log = _opened(store)[session_id] = cls(store, snapshot)
        return log

    @property
    def id(self) -> str:
        return self.snapshot.id

    @property
    def head(self) -> int:
        """The number of the last event that is stored."""
        return self.snapshot.last_seq

    @property
    def kept(self) -> int:
        """How many events are held in memory for followers."""
        return self._tail.head - self._tail.start

    async def change(self, decide: Decide, patient: bool = False) -> CommittedChange:
        """Makes true what `decide` says of the snapshot of its turn; if it raises, nothing has changed.

        A patient change (of what was said already) waits while the database takes no writes; any other
        raises Unavailable.
        """
        if self.closed:
            raise NotFound(f"no session {self.id}")
        return await self._turns.take(lambda: self._plan(decide(self.snapshot)), patient)

    async def append(
        self,
        drafts: Sequence[Draft],
        outbox: Sequence[OutboxLine] = (),
        consumed: Consumed | None = None,
        patient: bool = False,
    ) -> CommittedChange:
        """A change that needs no decision."""
        change = Change(drafts=drafts, outbox=outbox, consumed=consumed)
        return await self.change(lambda _: change, patient)

    def follow(self, after: int) -> LogFollower:
        """Everything after a number, in order, for as long as the log is open."""
        if not 0 <= after <= self.head:
            raise Invalid(f"the log ends at {self.head}: subscribe again, from there or from 0")
        follower = LogFollower(self, after, self.news)
        self._followers.add(follower)
        return follower

    def behind(self, after: int) -> bool:
        """Whether a reader that far back is better served with the snapshot first."""
        return self.head - after > FAR_BEHIND

    async def read(self, after: int, until: int) -> EventBatch:
        """Some events from `after` on, not beyond `until`."""
        if batch := self.recent(after, until):
            return batch
        encoded = await self._store.wire(self.id, after, min(until, after + PAGE) + 1, most_bytes=PAGE_BYTES)
        if not encoded:
            raise NotFound(f"the events of session {self.id} after {after} are gone")
        return EventBatch(after + 1, after + len(encoded), encoded, self.head)

    def recent(self, after: int, until: int) -> EventBatch | None:
        """The same from memory; None when they are not there any more."""
        wanted = (after, until)
        if self._shared is not None and self._shared[0] == wanted:
            return self._shared[1]
        if after < self._tail.start:
            return None
        encoded = self._tail.between(after, min(until, after + PAGE), PAGE_BYTES)
        batch = EventBatch(after + 1, after + len(encoded), encoded, self.head)
        self._shared = wanted, batch
        return batch

    def close(self) -> None:
        """Ends all followers; nothing can be changed any more."""
        self.closed = True
        self.news.ring(self.head)
        self.paced_news.ring(self.head)

    def _plan(self, change: Change) -> Append:
        snapshot = self.snapshot
        now = max(clock.now_ms(), snapshot.updated_at)
        entries = []
        for draft in change.drafts:
            event = Event(snapshot.last_seq + 1, now, draft.fact, draft.worker_id, draft.role)
            entry = storable_entry(event)
            snapshot = fold(snapshot, entry.event)
            entries.append(entry)
        return Append(
            before=self.snapshot,
            snapshot=snapshot,
            entries=entries,
            outbox=change.outbox,
            consumed=change.consumed,
            answer=_render(change.answer, snapshot),
        )

    def _accept(self, append: Append) -> None:
        if not append.entries:
            return
        self.snapshot = append.snapshot
        self._store.appended += len(append.entries)
        if self._followers:
            self._tail.extend([entry.wire() for entry in append.entries])
        else:
            self._tail.skip_to(self.head)
        self.news.ring(self.head)
        self.paced_news.ring(self.head)
        if self.on_commit:
            self.on_commit(self.snapshot)


def _opened(store: EventStore) -> "WeakValueDictionary[str, SessionLog]":
    return _open.setdefault(store, WeakValueDictionary())


def _render(answer: RequestAnswer | None, snapshot: Snapshot) -> StoredAnswer | None:
    if answer is None:
        return None
    status, body = answer.render(snapshot)
    return StoredAnswer(answer.key, answer.body_hash, status, body)
