"""The log of one session: the only place that assigns event numbers.

A change is decided on the snapshot, numbered, folded and stored; only then does `snapshot` show it and do
followers see it. So nothing that was visible is lost in a crash.
"""

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from .. import clock
from ..domain.errors import Invalid, NotFound
from ..domain.events import Draft, Event, SessionStart
from ..domain.snapshot import Snapshot, fold
from ..store.answers import PendingAnswer
from ..store.append import AlreadyAnswered, Append, ConsumedOffset, OutboxLine, StoredAnswer
from ..store.events import EventStore
from .change import Change, CommittedChange
from .change_queue import ChangeQueue
from .entries import storable_entry
from .event_tail import EventTail
from .follow import EventBatch, GrowthSignal, LogFollower, PacedGrowthSignal

__all__ = [
    "AlreadyAnswered",
    "Change",
    "CommittedChange",
    "ConsumedOffset",
    "OutboxLine",
    "SessionLog",
]

PAGE_EVENTS = 1000
PAGE_BYTES = 256 * 1024  # each follower that is behind holds several copies of one page
MAX_EVENTS_BEHIND = 10_000

Decide = Callable[[Snapshot], Change]

# One log for each session: two would assign the same number twice.
_open: WeakKeyDictionary[EventStore, WeakValueDictionary[str, "SessionLog"]] = WeakKeyDictionary()


class SessionLog:
    """The log of one session. `on_commit` is called with each new snapshot, in order."""

    def __init__(self, store: EventStore, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.closed = False
        self.on_commit: Callable[[Snapshot], None] | None = None
        self.growth = GrowthSignal(snapshot.last_seq)
        self._followers: WeakSet[LogFollower] = WeakSet()
        self.paced_growth: GrowthSignal = PacedGrowthSignal(snapshot.last_seq, self._followers)
        self._store = store
        self._changes = ChangeQueue(store, self._accept)
        self._tail = EventTail(snapshot.last_seq)
        self._shared: tuple[tuple[int, int], EventBatch] | None = None

    @classmethod
    async def create(
        cls,
        store: EventStore,
        session_id: str,
        drafts: Sequence[Draft],
        answer: PendingAnswer[Snapshot] | None = None,
    ) -> "SessionLog":
        """Create a session, or raise Invalid if its first fact is not SessionStart."""
        if not drafts or not isinstance(drafts[0].fact, SessionStart):
            raise Invalid("a session begins with session_start")
        log = cls(store, Snapshot(id=session_id))
        await log.change(lambda _: Change(drafts=drafts, answer=answer))
        _open_logs(store)[session_id] = log
        return log

    @classmethod
    async def open(cls, store: EventStore, session_id: str) -> "SessionLog":
        """Return the log of an existing session; the same object as long as it is referenced."""
        snapshot = await store.load(session_id)
        log = _open_logs(store).get(session_id)
        if log is None or log.closed:
            log = _open_logs(store)[session_id] = cls(store, snapshot)
        return log

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.snapshot.id

    @property
    def head(self) -> int:
        """The number of the last stored event."""
        return self.snapshot.last_seq

    @property
    def events_in_memory(self) -> int:
        """The number of events held in memory for followers."""
        return self._tail.head - self._tail.start

    async def change(self, decide: Decide, patient: bool = False) -> CommittedChange:
        """Call `decide` with the current snapshot and store the change it returns.

        If `decide` raises, nothing has changed. A patient change (one that records what already happened)
        waits while the database takes no writes; any other raises Unavailable.
        """
        if self.closed:
            raise NotFound(f"no session {self.id}")
        return await self._changes.submit(lambda: self._plan(decide(self.snapshot)), patient)

    async def append(
        self,
        drafts: Sequence[Draft],
        outbox: Sequence[OutboxLine] = (),
        consumed: ConsumedOffset | None = None,
        patient: bool = False,
    ) -> CommittedChange:
        """Append facts, outbox lines and a consumed offset that need no decision to the log."""
        change = Change(drafts=drafts, outbox=outbox, consumed=consumed)
        return await self.change(lambda _: change, patient)

    def follow(self, after: int) -> LogFollower:
        """Return a follower of all events after a number; raise Invalid if the log ends before it."""
        if not 0 <= after <= self.head:
            raise Invalid(f"the log ends at {self.head}: subscribe again, from there or from 0")
        follower = LogFollower(self, after, self.growth)
        self._followers.add(follower)
        return follower

    def is_far_behind(self, after: int) -> bool:
        """Return whether a reader at this number should get the snapshot first."""
        return self.head - after > MAX_EVENTS_BEHIND

    async def read(self, after: int, until: int) -> EventBatch:
        """Return at least one and at most a page of the events with after < seq <= until.

        They come from memory or from the database. Raise NotFound if the session was purged.
        """
        if batch := self.recent_batch(after, until):
            return batch
        encoded = await self._store.encoded_events(
            self.id, after, min(until, after + PAGE_EVENTS) + 1, max_bytes=PAGE_BYTES
        )
        if not encoded:
            raise NotFound(f"the events of session {self.id} after {after} are gone")
        return EventBatch(after + 1, after + len(encoded), encoded, self.head)

    def recent_batch(self, after: int, until: int) -> EventBatch | None:
        """Return some events with after < seq <= until from memory; None if they are not there."""
        requested = (after, until)
        if self._shared is not None and self._shared[0] == requested:
            return self._shared[1]
        if after < self._tail.start or until > self.head:
            return None
        encoded = self._tail.between(after, min(until, after + PAGE_EVENTS), PAGE_BYTES)
        batch = EventBatch(after + 1, after + len(encoded), encoded, self.head)
        self._shared = requested, batch
        return batch

    def close(self) -> None:
        """End all followers and refuse further changes."""
        self.closed = True
        self.growth.announce(self.head)
        self.paced_growth.announce(self.head)

    def _plan(self, change: Change) -> Append:
        """Return the append of a change: its drafts as numbered events, folded into the next snapshot.

        Nothing is stored yet. Raise Conflict if a fact is not allowed now.
        """
        snapshot = self.snapshot
        now = clock.now_ms()
        entries = []
        for draft in change.drafts:
            at = max(now if draft.at is None else draft.at, snapshot.updated_at)
            event = Event(snapshot.last_seq + 1, at, draft.fact, draft.worker_id, draft.role)
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
        """Publish a stored change: update the snapshot and notify the followers."""
        if not append.entries:
            return
        self.snapshot = append.snapshot
        self._store.appended_events += len(append.entries)
        if self._followers:
            self._tail.extend([entry.wire() for entry in append.entries])
        else:
            self._tail.skip_to(self.head)
        self.growth.announce(self.head)
        self.paced_growth.announce(self.head)
        if self.on_commit:
            self.on_commit(self.snapshot)


def _open_logs(store: EventStore) -> "WeakValueDictionary[str, SessionLog]":
    """Return the open logs of a store by session id."""
    return _open.setdefault(store, WeakValueDictionary())


def _render(answer: PendingAnswer[Snapshot] | None, snapshot: Snapshot) -> StoredAnswer | None:
    """Return the answer to store, made from the snapshot after the change."""
    if answer is None:
        return None
    status, body = answer.render(snapshot)
    return StoredAnswer(answer.key, answer.body_hash, status, body)
