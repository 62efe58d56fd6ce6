"""Sample events and appends for tests of logs and stores."""

from collections.abc import Sequence

from bullpen.domain.events import Draft, Error, Event, SessionStart, WorkerSpawning
from bullpen.domain.snapshot import Snapshot, fold
from bullpen.store.append import Append, ConsumedOffset, EventEntry, OutboxLine, StoredAnswer
from bullpen.wire.json import encode

SESSION_START = SessionStart(session_type="quick", location_path="/srv/x", title="A session")


def worker_spawning(run: int = 1) -> WorkerSpawning:
    return WorkerSpawning(worker_type="terminal", name="Shell", run=run, workspace="/srv/x")


def error_draft(text: str, worker_id: str | None = None) -> Draft:
    """Return an error event, which is allowed in every state of a session; its message is the text."""
    return Draft(Error(message=text), worker_id, worker_id and "shell")


def error_texts(events: Sequence[Event]) -> list[str]:
    return [event.fact.message for event in events if isinstance(event.fact, Error)]


def append_to(
    before: Snapshot,
    *drafts: Draft,
    outbox: Sequence[OutboxLine] = (),
    consumed: ConsumedOffset | None = None,
    answer: StoredAnswer | None = None,
) -> Append:
    """Return the append that a log would give to the store, for tests of the store alone."""
    snapshot, entries = before, []
    for draft in drafts:
        seq = snapshot.last_seq + 1
        event = Event(seq, 1_700_000_000_000 + seq, draft.fact, draft.worker_id, draft.role)
        snapshot = fold(snapshot, event)
        entries.append(EventEntry(event, encode(draft.fact.to_data())))
    return Append(
        before=before, snapshot=snapshot, entries=entries, outbox=outbox, consumed=consumed, answer=answer
    )


def new_session(session_id: str = "s") -> Append:
    return append_to(Snapshot(id=session_id), Draft(SESSION_START))


def new_session_with_worker(session_id: str = "s", worker_id: str = "w") -> Append:
    return append_to(
        Snapshot(id=session_id), Draft(SESSION_START), Draft(worker_spawning(), worker_id, "shell")
    )
