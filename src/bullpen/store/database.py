"""The database as the server holds it: one writer, a few readers, opened with the newest schema."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Self, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from ..domain.errors import RemoteFault, StorageFull, Unavailable
from ..threads import started_pool
from . import schema
from .ballast import SIZE, Ballast
from .engine import (
    READERS,
    DatabaseUnreachable,
    file_of,
    locked,
    parse_url,
    passes,
    reading_engine,
    refusal,
    writing_engine,
)
from .fence import LEASE, UNNAMED, Fence, FenceLost, FenceOwner, Lease
from .transactions import JobKind, Transactions
from .write_availability import PROBE_SECONDS, WriteAvailability
from .writer import DatabaseWriter

T = TypeVar("T")

READ_TRIES = 2  # of a read that fails for want of resources


class Database:
    """Reads run side by side; writes run one after another."""

    def __init__(self, url: str, transactions: Transactions, ballast: Ballast | None) -> None:
        self._reading = reading_engine(url)
        self._threads = started_pool(READERS, "bullpen-reader")
        self.writer = DatabaseWriter(transactions, WriteAvailability(ballast, transactions.beat))

    @classmethod
    @asynccontextmanager
    async def open(
        cls, url: str, ballast_size: int = SIZE, owner: FenceOwner = UNNAMED, lease: Lease = LEASE
    ) -> AsyncIterator[Self]:
        """Migrate the schema, claim the database for one server, and keep it open for the block.

        Raise InUse while another server works on it, unless the owner takes it over.
        """
        path = file_of(parse_url(url))
        ballast = Ballast(path.with_name(f"{path.name}.ballast"), ballast_size) if path else None
        fence = Fence(owner, lease, path)
        try:
            transactions, full = await asyncio.to_thread(_prepare, url, ballast, fence)
        except DBAPIError as error:
            raise RemoteFault(f"cannot open the database: {error.orig}") from error
        except Unavailable as error:
            raise RemoteFault(f"cannot open the database: {error}") from error
        database = cls(url, transactions, ballast)
        if full:
            database.writer.room.close(full)
        try:
            yield database
        finally:
            await database._close()

    @property
    def full(self) -> bool:
        """Whether new commands are refused because the disk has no room."""
        return self.writer.room.full

    @property
    def refusal(self) -> Unavailable | None:
        """A new exception that says why new commands are refused now; None if they are not."""
        return self.writer.refuse() if self.writer.room.closed_by else None

    @property
    def away(self) -> bool:
        """Whether the database is out of reach, or belongs to another server."""
        return isinstance(self.refusal, DatabaseUnreachable)

    @property
    def fence_lost(self) -> asyncio.Future[FenceLost]:
        """Done when this server must stop, because it may not write any more."""
        return self.writer.fence_lost

    async def read(self, work: Callable[[Connection], T], patient: bool = False) -> T:
        """Run `work` beside others on a connection that sees one moment and cannot write.

        A patient read waits for a database that is out of reach; any other raises Unavailable.
        """
        loop = asyncio.get_running_loop()
        while True:
            try:
                return await loop.run_in_executor(self._threads, self._read, work)
            except Unavailable:
                self._look()
                if not patient:
                    raise
            await asyncio.sleep(PROBE_SECONDS)

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
            if not passes(error, reading=True):
                raise
            if tries == 1:
                raise refusal(error, self._reading.url, reading=True) from error
        return self._read(work, tries - 1)

    def _look(self) -> None:
        """Let the writer find out whether the database is out of reach for it as well."""
        with suppress(Unavailable):
            looked = self.writer.submit(_CALL, lambda _: None)
            looked.add_done_callback(lambda future: future.exception())

    async def _close(self) -> None:
        await self.writer.close()
        self._threads.shutdown()
        self._reading.dispose()


class _FunctionJobs:
    """Jobs that are functions: each its own transaction."""

    together = False

    def write(self, connection: Connection, works: Sequence[Callable[[Connection], Any]]) -> Sequence[Any]:
        return [work(connection) for work in works]


_CALL: JobKind = _FunctionJobs()


def _prepare(url: str, ballast: Ballast | None, fence: Fence) -> tuple[Transactions, Unavailable | None]:
    """Migrate the schema and claim the database; on a full disk with the room that the ballast gives back."""
    full: Unavailable | None = None
    try:
        schema.prepare(url, fence.owner, fence.lease)
    except DBAPIError as error:
        if ballast is None or locked(error) or not passes(error):
            raise
        full = refusal(error, parse_url(url))
        ballast.drop()
        schema.prepare(url, fence.owner, fence.lease)
    transactions = Transactions(writing_engine(url), fence)
    try:
        full = _claim(transactions, ballast) or full
    except BaseException:
        transactions.close(release=False)
        raise
    if ballast and full is None:
        ballast.restore()
    return transactions, full


def _claim(transactions: Transactions, ballast: Ballast | None) -> Unavailable | None:
    """Claim the database. On a disk that is full even without the ballast, the first write claims it.

    Return the refusal of a full disk, if there was one.
    """
    try:
        transactions.beat()
    except StorageFull as full:
        if ballast is None:
            raise
        ballast.drop()
        with suppress(StorageFull):
            transactions.beat()
        return full
    return None
