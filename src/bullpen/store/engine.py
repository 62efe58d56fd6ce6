"""Connections to SQLite and PostgreSQL: how they are opened, and which of their errors pass by themselves."""

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
# Classes of SQLSTATE: connection lost, resources (53100 is disk full), operator intervention, system error.
_PASSING_POSTGRESQL = ("08", "53", "57", "58")


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
    return _postgresql_engine(parts, 1)


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


def passes(error: DBAPIError) -> bool:
    """Whether the same statement may succeed later: the disk was full or failing, the server out of reach."""
    if isinstance(error.orig, sqlite3.Error):
        return _primary_code(error) in _PASSING_SQLITE
    state: str | None = getattr(error.orig, "sqlstate", None)
    if state is None:  # no answer at all: the connection broke or never came about
        return error.connection_invalidated or isinstance(error, OperationalError)
    return state.startswith(_PASSING_POSTGRESQL)


def locked(error: DBAPIError) -> bool:
    """Return whether SQLite gave up waiting for a lock that another process holds."""
    return _primary_code(error) in _LOCKED_SQLITE


def refusal(error: DBAPIError, database: URL) -> Unavailable:
    """Return the error a caller gets for a database error that may pass by itself (see `passes`)."""
    if locked(error):
        name = Path(database.database or "").name
        return Unavailable(
            f"another process has kept the database {name} locked for more than {BUSY_TIMEOUT} seconds; "
            "try again when it has released the lock"
        )
    return StorageFull(f"the database cannot be written now: {error.orig}")


def _primary_code(error: DBAPIError) -> int:
    """Return SQLite's primary result code, which is the low byte; 0 for an error of another database."""
    code: int = getattr(error.orig, "sqlite_errorcode", 0)
    return code & 0xFF


def _pool(connections: int) -> dict[str, Any]:
    # What people and agents say must not end up in the text of an error, and so in a log file.
    return {"pool_size": connections, "max_overflow": 0, "hide_parameters": True}


def _postgresql_engine(parts: URL, connections: int) -> Engine:
    try:
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
