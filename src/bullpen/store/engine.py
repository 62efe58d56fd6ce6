"""Connections to SQLite and PostgreSQL: how they are opened, and which of their errors are temporary."""

import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from ..domain.errors import Invalid, StorageFull, Unavailable

DRIVERS = ("sqlite", "postgresql+psycopg")
READERS = 2
BUSY_TIMEOUT = 5  # seconds a statement waits for a lock that another process holds

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    f"PRAGMA busy_timeout={BUSY_TIMEOUT * 1000}",
    "PRAGMA journal_size_limit=67108864",  # a long reader may let the WAL grow; it shrinks again afterwards
)

# SQLITE_PROTOCOL is a lock, too: the WAL could not be locked after many tries.
_LOCKED_SQLITE = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_PASSING_SQLITE = _LOCKED_SQLITE | {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,  # also said of a file that is sound when one read of it fails with EIO
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,  # a file system that was remounted after an error
    sqlite3.SQLITE_NOMEM,
}
# Classes of SQLSTATE: connection lost, resources, operator intervention, system error; 25P03: see below.
_PASSING_POSTGRESQL = ("08", "53", "57", "58", "25P03")
_READ_ONLY_POSTGRESQL = "25006"  # a standby that is not promoted yet
_FULL_POSTGRESQL = "53100"

# The writer's transactions are short. One that stays idle belongs to a server that was cut off, and its row
# locks would hold up the server that replaces it.
_LONGEST_IDLE_TRANSACTION = 15_000  # milliseconds
# A database URL may set other values.
_NETWORK = {"connect_timeout": "5", "tcp_user_timeout": "15000"}  # seconds, milliseconds


class DatabaseUnreachable(Unavailable):
    """The database server does not answer, or takes no writes yet."""


def parse_url(url: str) -> URL:
    """The parts of a database URL; Invalid for one we cannot serve."""
    try:
        parts = make_url(url)
    except ArgumentError:
        raise Invalid(
            "the database URL is not of the form sqlite:///file or postgresql+psycopg://…"
        ) from None
    if parts.drivername not in DRIVERS:
        raise Invalid(f"a database URL starts with {' or '.join(DRIVERS)}, not {parts.drivername}")
    if parts.drivername == "sqlite" and parts.database in (None, "", ":memory:"):
        raise Invalid("the database URL sqlite:///… must name a file")
    return parts


def file_of(parts: URL) -> Path | None:
    """The file of a SQLite database."""
    return Path(parts.database or "") if parts.drivername == "sqlite" else None


def writing_engine(url: str, *more: str) -> Engine:
    """An engine of one connection whose transactions take the write lock when they begin.

    `more` are further PRAGMAs for SQLite.
    """
    parts = parse_url(url)
    if path := file_of(parts):
        make_private(path)
        return _sqlite_engine(parts, 1, "BEGIN IMMEDIATE", *more)
    engine = _postgresql_engine(parts, 1)

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _record: Any) -> None:
        connection.execute(f"SET idle_in_transaction_session_timeout = {_LONGEST_IDLE_TRANSACTION}")
        connection.commit()

    return engine


def reading_engine(url: str) -> Engine:
    """An engine of a few connections that cannot write."""
    parts = parse_url(url)
    if file_of(parts):
        return _sqlite_engine(parts, READERS, "BEGIN", "PRAGMA query_only=ON")
    engine = _postgresql_engine(parts, READERS)
    return engine.execution_options(postgresql_readonly=True, isolation_level="REPEATABLE READ")


def make_private(path: Path) -> None:
    """Makes the file if need be, readable by its owner only whatever the umask; a symlink is refused.

    SQLite gives its side files (-wal, -shm) the mode of the main one.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Invalid(f"cannot open the database {path}: {error.strerror}") from error
    try:
        if stat.S_IMODE(os.fstat(descriptor).st_mode) != 0o600:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


class DatabaseFiles:
    """A SQLite file and its write-ahead log, known by device and inode from the first look on."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._log = f"{path}-wal"
        self._known: tuple[tuple[int, int], tuple[int, int]] | None = None

    def in_place(self) -> bool:
        """Return whether the names still lead to the files that an open connection writes to."""
        try:
            found = _inode(self.path), _inode(self._log)
        except FileNotFoundError:
            return False
        except OSError:  # of the call, not of the files: the next one tells
            return True
        self._known = self._known or found
        return found == self._known


def _inode(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def passes(error: DBAPIError, reading: bool = False) -> bool:
    """Return whether the same statement may succeed later: the disk was full, the server out of reach.

    A database that is read-only for a moment is such an error of a writer, and a mistake of a reader.
    """
    if isinstance(error.orig, sqlite3.Error):
        code = _primary_code(error)
        return code in _PASSING_SQLITE and not (reading and code == sqlite3.SQLITE_READONLY)
    state: str | None = getattr(error.orig, "sqlstate", None)
    if state is None:  # no answer at all: the connection broke or never came about
        return error.connection_invalidated or isinstance(error, OperationalError)
    return state.startswith(_PASSING_POSTGRESQL) or (state == _READ_ONLY_POSTGRESQL and not reading)


def misses_table(error: DBAPIError) -> bool:
    """Return whether a table that the statement names does not exist."""
    return getattr(error.orig, "sqlstate", None) == "42P01" or "no such table" in str(error.orig)


def locked(error: DBAPIError) -> bool:
    """Return whether SQLite gave up waiting for a lock that another process holds."""
    return _primary_code(error) in _LOCKED_SQLITE


def refusal(error: DBAPIError, database: URL, reading: bool = False) -> Unavailable:
    """Return the error a caller gets for a database error that may pass by itself (see `passes`)."""
    if locked(error):
        name = Path(database.database or "").name
        return Unavailable(
            f"another process has kept the database {name} locked for more than {BUSY_TIMEOUT} seconds; "
            "try again when it has released the lock"
        )
    if isinstance(error.orig, sqlite3.Error) or getattr(error.orig, "sqlstate", None) == _FULL_POSTGRESQL:
        if reading:
            return Unavailable(f"the database cannot be read now: {error.orig}")
        return StorageFull(f"the database cannot be written now: {error.orig}")
    return DatabaseUnreachable(
        f"the PostgreSQL database {database.database} cannot be reached; nothing was changed, "
        "try again in a moment"
    )


def _primary_code(error: DBAPIError) -> int:
    """Return SQLite's primary result code, which is the low byte; 0 for an error of another database."""
    code: int = getattr(error.orig, "sqlite_errorcode", 0)
    return code & 0xFF


def _pool(connections: int) -> dict[str, Any]:
    # What people and agents say must not end up in the text of an error, and so in a log file.
    return {"pool_size": connections, "max_overflow": 0, "hide_parameters": True}


def _postgresql_engine(parts: URL, connections: int) -> Engine:
    try:
        parts = parts.set(query={**_NETWORK, **parts.query})
        return create_engine(parts, pool_pre_ping=True, **_pool(connections))
    except ModuleNotFoundError:
        raise Invalid("PostgreSQL needs a driver: install bullpen[postgresql]") from None


def _sqlite_engine(parts: URL, connections: int, begin: str, *more: str) -> Engine:
    engine = create_engine(parts, **_pool(connections))

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _record: Any) -> None:
        # Python's own transaction handling would begin late and never with IMMEDIATE.
        connection.isolation_level = None
        for pragma in (*_PRAGMAS, *more):
            connection.execute(pragma)

    @event.listens_for(engine, "begin")
    def begin_transaction(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine
