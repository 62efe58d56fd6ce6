"""The open database of the server: one writer thread, a few readers, and the newest schema."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Self, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from ..domain.errors import RemoteFault, StorageFull, Unavailable
from ..threads import started_pool
from ..wire.struct_types import prepare_structs
from . import schema
from .ballast import SIZE_BYTES, Ballast
from .engine import (
    READERS,
    DatabaseUnreachable,
    is_lock_timeout,
    is_temporary,
    parse_url,
    reading_engine,
    sqlite_file,
    temporary_error,
    writing_engine,
)
from .fence import LEASE, UNNAMED, Fence, FenceLost, FenceOwner, Lease
from .transactions import JobKind, Transactions
from .write_availability import PROBE_SECONDS, WriteAvailability
from .writer import DatabaseWriter

T = TypeVar("T")

READ_TRIES = 2  # of a read that fails for want of resources


class Database:
    """Access to the database. Reads run concurrently; writes run one after another."""

    def __init__(self, url: str, transactions: Transactions, ballast: Ballast | None) -> None:
        self._reading = reading_engine(url)
        self._threads = started_pool(READERS, "bullpen-reader")
        self.writer = DatabaseWriter(transactions, WriteAvailability(ballast, transactions.send_heartbeat))

    @classmethod
    @asynccontextmanager
    async def open(
        cls, url: str, ballast_size: int = SIZE_BYTES, owner: FenceOwner = UNNAMED, lease: Lease = LEASE
    ) -> AsyncIterator[Self]:
        """Migrate the schema, claim the database for this server, and keep it open for the block.

        Raise DatabaseInUse while another server uses it, unless the owner takes it over.
        """
        prepare_structs()  # before the threads that read and write exist
        path = sqlite_file(parse_url(url))
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
            database.writer.availability.note_refusal(full)
        try:
            yield database
        finally:
            await database._close()

    @property
    def full(self) -> bool:
        """Whether new commands are refused because the disk is full."""
        return self.writer.availability.full

    @property
    def refusal(self) -> Unavailable | None:
        """A new exception that says why new commands are refused now; None if they are not."""
        return self.writer.refusal() if self.writer.availability.refused_by else None

    @property
    def unreachable(self) -> bool:
        """Whether the database server does not answer, or another server uses the database."""
        return isinstance(self.refusal, DatabaseUnreachable)

    @property
    def fence_lost(self) -> asyncio.Future[FenceLost]:
        """A future that is done when this server must stop because it may not write any more."""
        return self.writer.fence_lost

    async def read(self, work: Callable[[Connection], T], patient: bool = False) -> T:
        """Run `work` on a read-only connection that sees one consistent state; reads run concurrently.

        A patient read waits while the database is unreachable; any other raises Unavailable.
        """
        loop = asyncio.get_running_loop()
        while True:
            try:
                return await loop.run_in_executor(self._threads, self._read, work)
            except Unavailable:
                self._probe_writer()
                if not patient:
                    raise
            await asyncio.sleep(PROBE_SECONDS)

    async def write(self, work: Callable[[Connection], T], patient: bool = False) -> T:
        """Run `work` in its own transaction, after the writes before it.

        While the disk is full, only patient writes are tried, with the space that the ballast released.
        """
        result: T = await self.writer.submit(_FUNCTION_JOBS, work, patient)
        return result

    def _read(self, work: Callable[[Connection], T], tries: int = READ_TRIES) -> T:
        """Run `work` in a transaction; retry at once after a temporary error, then raise Unavailable."""
        try:
            with self._reading.connect() as connection, connection.begin():
                return work(connection)
        except DBAPIError as error:
            if not is_temporary(error, reading=True):
                raise
            if tries == 1:
                raise temporary_error(error, self._reading.url, reading=True) from error
        return self._read(work, tries - 1)

    def _probe_writer(self) -> None:
        """Let the writer find out whether it cannot reach the database either."""
        with suppress(Unavailable):
            looked = self.writer.submit(_FUNCTION_JOBS, lambda _: None)
            looked.add_done_callback(lambda future: future.exception())

    async def _close(self) -> None:
        """Write what waits, then close all connections."""
        await self.writer.close()
        self._threads.shutdown()
        self._reading.dispose()


class _FunctionJobs:
    """Jobs that are functions, each in its own transaction."""

    together = False

    def write(self, connection: Connection, works: Sequence[Callable[[Connection], Any]]) -> Sequence[Any]:
        """Call the functions with the connection and return their results."""
        return [work(connection) for work in works]


_FUNCTION_JOBS: JobKind = _FunctionJobs()


def _prepare(url: str, ballast: Ballast | None, fence: Fence) -> tuple[Transactions, Unavailable | None]:
    """Migrate the schema and claim the database, on a full disk with the space of the ballast.

    Return the transactions, and the error of a full disk if there was one.
    """
    full: Unavailable | None = None
    try:
        schema.prepare(url, fence.owner, fence.lease)
    except DBAPIError as error:
        if ballast is None or is_lock_timeout(error) or not is_temporary(error):
            raise
        full = temporary_error(error, parse_url(url))
        ballast.release()
        schema.prepare(url, fence.owner, fence.lease)
    transactions = Transactions(writing_engine(url), fence)
    try:
        full = _claim(transactions, ballast) or full
    except BaseException:
        transactions.close(release=False)
        raise
    if ballast and full is None:
        ballast.reserve()
    return transactions, full


def _claim(transactions: Transactions, ballast: Ballast | None) -> Unavailable | None:
    """Claim the database; return None, or why that is not possible yet.

    On a disk that is full even without the ballast, the first write claims it.
    """
    try:
        transactions.send_heartbeat()
    except StorageFull as full:
        if ballast is None:
            raise
        ballast.release()
        with suppress(StorageFull):
            transactions.send_heartbeat()
        return full
    return None
