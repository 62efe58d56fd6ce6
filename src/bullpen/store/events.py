"""The event store: append events in groups, and read events, snapshots, messages and outbox lines."""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, FromClause, Select, select, union_all

from ..domain.errors import NotFound, Unavailable
from ..domain.events import Event, Fact
from ..domain.snapshot import Snapshot, fold
from .answers import read_answers
from .append import Append, StoredAnswer
from .append_group import AppendGroup
from .database import Database
from .outbox import DeliveredLines, Numbers, read_lines
from .projections import read_entry, read_wire
from .purge import hide, purge, unfinished_purges
from .saved_snapshots import SAVE_INTERVAL_EVENTS, read_snapshot, saved_row
from .statements import upsert_rows
from .tables import consumed, events, messages, purges, sessions, snapshots

PAGE_EVENTS = 1000


class EventStore:
    """Stores and reads what SessionLog appends."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.appended_events = 0  # since this process started; counted by the logs
        self._group = AppendGroup()

    @property
    def full(self) -> bool:
        """Whether new commands are refused because the disk is full."""
        return self.database.full

    @property
    def refusal(self) -> Unavailable | None:
        """A new exception that says why new commands are refused now; None if they are not."""
        return self.database.refusal

    def commit(self, append: Append, patient: bool = False) -> asyncio.Future[Numbers]:
        """Store all of an append or nothing, also if no caller awaits the future."""
        return self.database.writer.submit(self._group, append, patient)

    async def events(
        self,
        session_id: str,
        after: int = 0,
        before: int | None = None,
        limit: int = PAGE_EVENTS,
        types: Collection[str] | None = None,
    ) -> list[tuple[Event, bytes]]:
        """Return events of a session with after < seq < before, in order, each with its JSON."""
        query = _select_events(session_id, after, before, limit, types)
        entries = await self.database.read(lambda c: [read_entry(row) for row in c.execute(query)])
        return [(entry.event, entry.wire()) for entry in entries]

    async def newest_fact(self, session_id: str, worker_id: str, type: type[Fact]) -> Fact | None:
        """Return the last fact of one type by a worker; None if there is none."""
        mine = select(events).where(events.c.session_id == session_id, events.c.worker_id == worker_id)
        query = mine.where(events.c.type == type.type).order_by(events.c.seq.desc()).limit(1)
        row = await self.database.read(lambda c: c.execute(query).one_or_none(), patient=True)
        return None if row is None else read_entry(row).event.fact

    async def encoded_events(
        self,
        session_id: str,
        after: int = 0,
        before: int | None = None,
        limit: int = PAGE_EVENTS,
        types: Collection[str] | None = None,
        *,
        newest: bool = False,
        max_bytes: int | None = None,
    ) -> list[bytes]:
        """Return the JSON of events with after < seq < before, in order, without parsing them.

        Stop beyond `max_bytes`. With `newest`, `limit` keeps the last events instead of the first.
        """
        query = _select_events(session_id, after, before, limit, types)
        if newest:
            last = query.order_by(None).order_by(events.c.seq.desc()).subquery()
            query = select(last).order_by(last.c.seq)
        return await self.database.read(lambda c: _read_wires(c, query, max_bytes))

    async def seq_at(self, session_id: str, time: int, head: int) -> int:
        """Return the number of the last event at or before a time; 0 if there is none.

        A binary search up to `head`: times never decrease.
        """
        return await self.database.read(lambda c: _seq_at(c, session_id, time, head))

    async def load(self, session_id: str) -> Snapshot:
        """Return the current snapshot of a session, or raise NotFound.

        Save it if many events had to be folded, so that the next load is faster.
        """
        snapshot, folded = await self.database.read(lambda c: _load(c, session_id))
        if folded > SAVE_INTERVAL_EVENTS:
            with suppress(Unavailable):  # saving only makes the next load faster
                await self.database.write(lambda c: upsert_rows(c, snapshots, [saved_row(snapshot)]))
        return snapshot

    async def messages(
        self, session_id: str, since: int | None = None, limit: int = PAGE_EVENTS, *, newest: bool = False
    ) -> list[dict[str, Any]]:
        """Return the first `limit` messages of a session as rows, oldest first; with `newest`, the last ones.

        With `since`, a time in milliseconds, only those that are new or have changed after it.
        """
        found: FromClause = messages
        query = select(found).where(found.c.session_id == session_id)
        if since is not None:
            changed = query.where(found.c.updated_at > since, found.c.timestamp <= since)
            found = union_all(query.where(found.c.timestamp > since), changed).subquery()
            query = select(found)
        # Times never decrease, so this is the order of seq, and it has an index.
        order = (found.c.timestamp, found.c.seq)
        query = query.order_by(*(each.desc() for each in order) if newest else order).limit(limit)
        rows = await self.database.read(lambda c: [dict(row) for row in c.execute(query).mappings()])
        return rows[::-1] if newest else rows

    async def undelivered_lines(self, worker_id: str, run: int) -> list[tuple[int, bytes]]:
        """Return the outbox lines that may not be delivered yet as (number, bytes), in order."""
        return await self.database.read(lambda c: read_lines(c, worker_id, run), patient=True)

    async def remove_delivered_lines(self, worker_id: str, run: int, n: int) -> None:
        """Delete the outbox lines up to `n`. If the database refuses, a later call deletes them."""
        with suppress(Unavailable):
            await self.database.writer.submit(self._group, DeliveredLines(worker_id, run, n), patient=True)

    async def consumed_offset(self, worker_id: str, run: int) -> int:
        """Return the offset up to which the output of a run has been read; 0 at first."""
        query = select(consumed.c.offset).where(consumed.c.worker_id == worker_id, consumed.c.run == run)
        return await self.database.read(lambda c: c.execute(query).scalar(), patient=True) or 0

    async def stored_answer(self, key: str) -> StoredAnswer | None:
        """Return the answer of the last 24 hours to a request with this key; None if there is none."""
        found = await self.database.read(lambda c: read_answers(c, [key]))
        return found[0] if found else None

    async def hide(self, session_id: str) -> None:
        """Hide a session, also after a crash, as the first step of its purge."""
        await hide(self.database, session_id)

    async def purge(self, session_id: str) -> None:
        """Delete a session and everything that belongs to it."""
        await purge(self.database, session_id)

    async def unfinished_purges(self) -> dict[str, list[str]]:
        """Return the sessions whose purge is not finished, each with its worker ids."""
        return await unfinished_purges(self.database)


def _select_events(
    session_id: str, after: int, before: int | None, limit: int, types: Collection[str] | None
) -> Select[Any]:
    """Return the query for events of a session with after < seq < before."""
    query = select(events).where(events.c.session_id == session_id, events.c.seq > after)
    if before is not None:
        query = query.where(events.c.seq < before)
    if types is not None:
        query = query.where(events.c.type.in_(types))
    return query.order_by(events.c.seq).limit(limit)


def _seq_at(connection: Connection, session_id: str, time: int, head: int) -> int:
    """Return the number of a session's last event at or before a time; 0 if there is none.

    The search is binary, among the events up to `head`.
    """
    low = 0
    while low < head:
        middle = (low + head + 1) // 2
        of = select(events.c.timestamp).where(events.c.session_id == session_id, events.c.seq == middle)
        if (connection.execute(of).scalar() or 0) <= time:
            low = middle
        else:
            head = middle - 1
    return low


def _read_wires(connection: Connection, query: Select[Any], max_bytes: int | None) -> list[bytes]:
    """Return the JSON of events; end after the one with which they exceed `max_bytes`."""
    wires: list[bytes] = []
    size = 0
    # In small portions: a thousand events may be a few kilobytes or fill the memory.
    for row in connection.execute(query.execution_options(yield_per=100)):
        wires.append(read_wire(row))
        size += len(wires[-1])
        if max_bytes is not None and size > max_bytes:
            break
    return wires


def _load(connection: Connection, session_id: str) -> tuple[Snapshot, int]:
    """Fold the events after the saved snapshot; return the snapshot, and how many events were folded.

    Raise NotFound if there is no such session.
    """
    found = connection.execute(
        select(sessions.c.id, snapshots.c.schema, snapshots.c.body)
        .outerjoin(snapshots, snapshots.c.session_id == sessions.c.id)
        .where(sessions.c.id == session_id, sessions.c.id.notin_(select(purges)))
    ).one_or_none()
    if found is None:
        raise NotFound(f"no session {session_id}")
    start = read_snapshot(found.schema, found.body) if found.body is not None else None
    start = start or Snapshot(id=session_id)
    snapshot = _fold_rest(connection, start)
    return snapshot, snapshot.last_seq - start.last_seq


def _fold_rest(connection: Connection, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot after all stored events that follow it."""
    while True:
        query = _select_events(snapshot.id, snapshot.last_seq, None, PAGE_EVENTS, None)
        rows = connection.execute(query).all()
        for row in rows:
            snapshot = fold(snapshot, read_entry(row).event)
        if len(rows) < PAGE_EVENTS:
            return snapshot
