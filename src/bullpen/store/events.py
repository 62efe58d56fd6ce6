"""The events of every session: stored in groups, read back in order, never changed."""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, Select, select

from ..domain.errors import NotFound, Unavailable
from ..domain.events import Event, Fact
from ..domain.snapshot import Snapshot, fold
from .answers import read_answers
from .append import Append, StoredAnswer
from .database import Database
from .group import AppendGroup
from .outbox import DeliveredLines, Numbers, read_lines
from .projections import read_entry, read_wire
from .purge import hidden, hide, purge
from .saved import EVERY, read_snapshot, saved_row
from .statements import put
from .tables import consumed, events, messages, purges, sessions, snapshots

PAGE = 1000


class EventStore:
    """Where a SessionLog keeps what happened."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.appended = 0  # events of this process; their logs count them
        self._group = AppendGroup()

    @property
    def full(self) -> bool:
        return self.database.full

    @property
    def refusal(self) -> Unavailable | None:
        """A new exception that says why new commands are refused now; None if they are not."""
        return self.database.refusal

    def commit(self, append: Append, patient: bool = False) -> asyncio.Future[Numbers]:
        """Stores all of an append or nothing; what becomes of it does not depend on anybody awaiting it."""
        return self.database.writer.submit(self._group, append, patient)

    async def events(
        self,
        session_id: str,
        after: int = 0,
        before: int | None = None,
        limit: int = PAGE,
        types: Collection[str] | None = None,
    ) -> list[tuple[Event, bytes]]:
        """Events with after < seq (< before), in order, each with its form on the wire."""
        query = _range(session_id, after, before, limit, types)
        entries = await self.database.read(lambda c: [read_entry(row) for row in c.execute(query)])
        return [(entry.event, entry.wire()) for entry in entries]

    async def newest(self, session_id: str, worker_id: str, type: type[Fact]) -> Fact | None:
        """The last fact of one kind that a worker told."""
        mine = select(events).where(events.c.session_id == session_id, events.c.worker_id == worker_id)
        query = mine.where(events.c.type == type.type).order_by(events.c.seq.desc()).limit(1)
        row = await self.database.read(lambda c: c.execute(query).one_or_none(), patient=True)
        return None if row is None else read_entry(row).event.fact

    async def wire(
        self,
        session_id: str,
        after: int = 0,
        before: int | None = None,
        limit: int = PAGE,
        types: Collection[str] | None = None,
        *,
        newest: bool = False,
        most_bytes: int | None = None,
    ) -> list[bytes]:
        """The same events, only as they go over the wire: nothing is parsed. Stops beyond `most_bytes`.

        `newest`: of more than `limit` the last ones, not the first.
        """
        query = _range(session_id, after, before, limit, types)
        if newest:
            last = query.order_by(None).order_by(events.c.seq.desc()).subquery()
            query = select(last).order_by(last.c.seq)
        return await self.database.read(lambda c: _read_wires(c, query, most_bytes))

    async def seq_at(self, session_id: str, time: int, head: int) -> int:
        """The last event up to a time; 0 when there is none. Looked for by halves: times never go back."""
        return await self.database.read(lambda c: _seq_at(c, session_id, time, head))

    async def load(self, session_id: str) -> Snapshot:
        """The session as it is."""
        snapshot, folded = await self.database.read(lambda c: _load(c, session_id))
        if folded > EVERY:
            with suppress(Unavailable):  # it only saves the next one some time
                await self.database.write(lambda c: put(c, snapshots, [saved_row(snapshot)]))
        return snapshot

    async def messages(
        self, session_id: str, since: int | None = None, limit: int = PAGE, *, newest: bool = False
    ) -> list[dict[str, Any]]:
        """The conversation in order: rows of id, seq, role, content (JSON text) and timestamp.

        `newest`: of more than `limit` the last ones, not the first.
        """
        query = select(messages).where(messages.c.session_id == session_id)
        if since is not None:
            query = query.where(messages.c.timestamp > since)
        # Times never go back: this is the order of the numbers, and there is an index for it.
        order = (messages.c.timestamp, messages.c.seq)
        query = query.order_by(*(each.desc() for each in order) if newest else order).limit(limit)
        rows = await self.database.read(lambda c: [dict(row) for row in c.execute(query).mappings()])
        return rows[::-1] if newest else rows

    async def outbox(self, worker_id: str, run: int) -> list[tuple[int, bytes]]:
        """The lines not known to be delivered, as (number, bytes), in order."""
        return await self.database.read(lambda c: read_lines(c, worker_id, run), patient=True)

    async def outbox_done(self, worker_id: str, run: int, n: int) -> None:
        """Remove the lines up to n. If the database refuses, they stay, and the next call removes them."""
        with suppress(Unavailable):
            await self.database.writer.submit(self._group, DeliveredLines(worker_id, run, n), patient=True)

    async def consumed(self, worker_id: str, run: int) -> int:
        """How far the output of a run has been read; 0 when none was."""
        query = select(consumed.c.offset).where(consumed.c.worker_id == worker_id, consumed.c.run == run)
        return await self.database.read(lambda c: c.execute(query).scalar(), patient=True) or 0

    async def answer(self, key: str) -> StoredAnswer | None:
        """What a request with this key was answered in the last 24 hours."""
        found = await self.database.read(lambda c: read_answers(c, [key]))
        return found[0] if found else None

    async def hide(self, session_id: str) -> None:
        """The first step of a purge: after it nobody finds the session any more, nor after a crash."""
        await hide(self.database, session_id)

    async def purge(self, session_id: str) -> None:
        """Removes a session and everything of it, for good."""
        await purge(self.database, session_id)

    async def hidden(self) -> dict[str, list[str]]:
        """The sessions whose purge is not finished, each with its workers."""
        return await hidden(self.database)


def _range(
    session_id: str, after: int, before: int | None, limit: int, types: Collection[str] | None
) -> Select[Any]:
    query = select(events).where(events.c.session_id == session_id, events.c.seq > after)
    if before is not None:
        query = query.where(events.c.seq < before)
    if types is not None:
        query = query.where(events.c.type.in_(types))
    return query.order_by(events.c.seq).limit(limit)


def _seq_at(connection: Connection, session_id: str, time: int, head: int) -> int:
    low = 0
    while low < head:
        middle = (low + head + 1) // 2
        of = select(events.c.timestamp).where(events.c.session_id == session_id, events.c.seq == middle)
        if (connection.execute(of).scalar() or 0) <= time:
            low = middle
        else:
            head = middle - 1
    return low


def _read_wires(connection: Connection, query: Select[Any], most_bytes: int | None) -> list[bytes]:
    wires: list[bytes] = []
    size = 0
    # In small portions: a thousand events may be a few kilobytes or all the memory there is.
    for row in connection.execute(query.execution_options(yield_per=100)):
        wires.append(read_wire(row))
        size += len(wires[-1])
        if most_bytes is not None and size > most_bytes:
            break
    return wires


def _load(connection: Connection, session_id: str) -> tuple[Snapshot, int]:
    """The session, and how many events had to be folded for it."""
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
    while True:
        query = _range(snapshot.id, snapshot.last_seq, None, PAGE, None)
        rows = connection.execute(query).all()
        for row in rows:
            snapshot = fold(snapshot, read_entry(row).event)
        if len(rows) < PAGE:
            return snapshot
