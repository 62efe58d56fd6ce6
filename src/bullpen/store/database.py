"""The database as the server holds it: one writer, a few readers, opened with the newest schema."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from ..domain.errors import RemoteFault, Unavailable
from ..threads import started_pool
from . import schema
from .ballast import SIZE, Ballast
from .engine import READERS, file_of, locked, parse_url, passes, reading_engine, writing_engine
from .room import Room
from .statements import put
from .tables import settings
from .transactions import Kind, Transactions
from .writer import Writer

T = TypeVar("T")

READ_TRIES = 2  # of a read that fails for want of resources


class Database:
    """Reads run side by side; writes run one after another."""

    def __init__(self, url: str, ballast: Ballast | None, has_room: bool) -> None:
        self._reading = reading_engine(url)
        self._writing = writing_engine(url)
        self._threads = started_pool(READERS, "bullpen-reader")
        transactions = Transactions(self._writing)
        room = Room(ballast, lambda: _probe(transactions))
        if not has_room:
            room.ran_out()
        self.writer = Writer(transactions, room)

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, ballast_size: int = SIZE) -> AsyncIterator[Self]:
        """Brings the schema up to date and keeps the database open for the block."""
        path = file_of(parse_url(url))
        ballast = Ballast(path.with_name(f"{path.name}.ballast"), ballast_size) if path else None
        try:
            has_room = await asyncio.to_thread(_prepare, url, ballast)
            database = cls(url, ballast, has_room)
        except DBAPIError as error:
            raise RemoteFault(f"cannot open the database: {error.orig}") from error
        try:
            yield database
        finally:
            await database._close()

    @property
    def full(self) -> bool:
        """Whether new commands are refused because the disk has no room."""
        return self.writer.room.full

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Runs `work` beside others on a connection that sees one moment and cannot write."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, work)

    async def write(self, work: Callable[[Connection], T], patient: bool = False) -> T:
        """Runs `work` in a transaction of its own, in turn with everything else that is written.

        When the disk is full only what is patient is tried, with the room the ballast gave back.
        """
        result: T = await self.writer.submit(_CALL, work, patient)
        return result

    def _read(self, work: Callable[[Connection], T], tries: int = READ_TRIES) -> T:
        """Run `work`; again if the database failed in a way that may pass, at last raise Unavailable."""
        try:
            with self._reading.connect() as connection, connection.begin():
                return work(connection)
        except DBAPIError as error:
            if not passes(error):
                raise
            if tries == 1:
                raise Unavailable(f"the database cannot be read now: {error.orig}") from error
        return self._read(work, tries - 1)

    async def _close(self) -> None:
        await self.writer.close()
        self._threads.shutdown()
        self._reading.dispose()
        self._writing.dispose()


class _Call:
    """Jobs that are functions: each its own transaction."""

    together = False

    def write(self, connection: Connection, works: Sequence[Callable[[Connection], Any]]) -> Sequence[Any]:
        return [work(connection) for work in works]


_CALL: Kind = _Call()


def _prepare(url: str, ballast: Ballast | None) -> bool:
    """Brings the schema up to date; False when the only room for that was what the ballast gave back."""
    try:
        schema.prepare(url)
    except DBAPIError as error:
        if ballast is None or locked(error) or not passes(error):
            raise
        ballast.drop()
        schema.prepare(url)
        return False
    if ballast:
        ballast.restore()
    return True


def _probe(transactions: Transactions) -> None:
    """The smallest write there is, to see whether the disk takes one."""
    row = {"key": "storage.probe", "value": "null"}
    transactions.run(_CALL, [lambda connection: put(connection, settings, [row])])
