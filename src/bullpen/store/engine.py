"""Connections to SQLite and PostgreSQL: how to open them, and which of their errors are temporary."""

import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from ..domain.errors import Invalid, StorageFull, Unavailable
from ..intervals import intervals

DRIVERS = ("sqlite", "postgresql+psycopg")
READERS = 2

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA journal_size_limit=67108864",  # a long reader may let the WAL grow; it shrinks again afterwards
)

# SQLITE_PROTOCOL also concerns a lock: the WAL could not be locked after many tries.
_LOCKED_SQLITE = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_TEMPORARY_SQLITE = _LOCKED_SQLITE | {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,  # also reported for an intact file if one read fails with EIO
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,  # a file system that was remounted after an error
    sqlite3.SQLITE_NOMEM,
}
# Classes of SQLSTATE: connection lost, resources, operator intervention, system error; 25P03: see below.
_TEMPORARY_POSTGRESQL = ("08", "53", "57", "58", "25P03")
_READ_ONLY_POSTGRESQL = "25006"  # a standby that is not promoted yet
_FULL_POSTGRESQL = "53100"

# The writer's transactions are short. An idle one belongs to a server that lost its connection, and its row
# locks would block the server that replaces it.
_MAX_IDLE_TRANSACTION_MS = 15_000
# Defaults; a database URL may set other values.
_NETWORK_OPTIONS = {"connect_timeout": "5", "tcp_user_timeout": "15000"}  # seconds, milliseconds


class DatabaseUnreachable(Unavailable):
    """The database server does not answer, or does not accept writes yet."""


def parse_url(url: str) -> URL:
    """Return the parts of a database URL, or raise Invalid if it is not supported."""
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


def sqlite_file(parts: URL) -> Path | None:
    """Return the file of an SQLite database; None for PostgreSQL."""
    return Path(parts.database or "") if parts.drivername == "sqlite" else None


def writing_engine(url: str, *pragmas: str) -> Engine:
    """Return an engine with one connection whose transactions lock the database when they begin.

    `pragmas` are further PRAGMA statements for SQLite.
    """
    parts = parse_url(url)
    if path := sqlite_file(parts):
        create_private_file(path)
        return _sqlite_engine(parts, 1, "BEGIN IMMEDIATE", *pragmas)
    engine = _postgresql_engine(parts, 1)

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _record: Any) -> None:
        connection.execute(f"SET idle_in_transaction_session_timeout = {_MAX_IDLE_TRANSACTION_MS}")
        connection.commit()

    return engine


def reading_engine(url: str) -> Engine:
    """Return an engine with a few read-only connections."""
    parts = parse_url(url)
    if sqlite_file(parts):
        return _sqlite_engine(parts, READERS, "BEGIN", "PRAGMA query_only=ON")
    engine = _postgresql_engine(parts, READERS)
    return engine.execution_options(postgresql_readonly=True, isolation_level="REPEATABLE READ")


def create_private_file(path: Path) -> None:
    """Create a database file if it is missing and make it private to its owner; refuse a symlink.

    SQLite gives its side files (-wal, -shm) the mode of the main file.
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
    """An SQLite file and its write-ahead log, identified by device and inode."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._log = f"{path}-wal"
        self._known: tuple[tuple[int, int], tuple[int, int]] | None = None

    def in_place(self) -> bool:
        """Return whether the paths lead to the same files as at the first call, which records these files.

        A failure that says nothing about the files counts as yes.
        """
        try:
            found = _inode(self.path), _inode(self._log)
        except FileNotFoundError:
            return False
        except OSError:  # the call failed, which says nothing about the files
            return True
        self._known = self._known or found
        return found == self._known


def _inode(path: str) -> tuple[int, int]:
    """Return device and inode of a file."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


def is_temporary(error: DBAPIError, reading: bool = False) -> bool:
    """Return whether the same statement may succeed later: a full disk, a lock, an unreachable server.

    A database that is read-only is a temporary error for a writer and a bug for a reader.
    """
    if isinstance(error.orig, sqlite3.Error):
        code = _primary_code(error)
        return code in _TEMPORARY_SQLITE and not (reading and code == sqlite3.SQLITE_READONLY)
    state: str | None = getattr(error.orig, "sqlstate", None)
    if state is None:  # no answer: the connection failed
        return error.connection_invalidated or isinstance(error, OperationalError)
    return state.startswith(_TEMPORARY_POSTGRESQL) or (state == _READ_ONLY_POSTGRESQL and not reading)


def misses_table(error: DBAPIError) -> bool:
    """Return whether the error is that a table does not exist."""
    return getattr(error.orig, "sqlstate", None) == "42P01" or "no such table" in str(error.orig)


def is_lock_timeout(error: DBAPIError) -> bool:
    """Return whether SQLite gave up waiting for a lock that another process holds."""
    return _primary_code(error) in _LOCKED_SQLITE


def temporary_error(error: DBAPIError, database: URL, reading: bool = False) -> Unavailable:
    """Return the exception for callers after a temporary database error (see `is_temporary`)."""
    if is_lock_timeout(error):
        name = Path(database.database or "").name
        return Unavailable(
            f"another process has kept the database {name} locked for more than {intervals().lock_wait:g} "
            "seconds; try again when it has released the lock"
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
    """Return SQLite's primary result code, which is the low byte; 0 for another database."""
    code: int = getattr(error.orig, "sqlite_errorcode", 0)
    return code & 0xFF


def _pool_options(connections: int) -> dict[str, Any]:
    """Return the options of a connection pool of fixed size."""
    # Texts of users and agents must not appear in error messages, which are logged.
    return {"pool_size": connections, "max_overflow": 0, "hide_parameters": True}


def _postgresql_engine(parts: URL, connections: int) -> Engine:
    """Return an engine for PostgreSQL, or raise Invalid without a driver."""
    try:
        parts = parts.set(query={**_NETWORK_OPTIONS, **parts.query})
        return create_engine(parts, pool_pre_ping=True, **_pool_options(connections))
    except ModuleNotFoundError:
        raise Invalid("PostgreSQL needs a driver: install bullpen[postgresql]") from None


def _sqlite_engine(parts: URL, connections: int, begin: str, *pragmas: str) -> Engine:
    """Return an engine for SQLite that begins transactions with the statement `begin`."""
    engine = create_engine(parts, **_pool_options(connections))

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _record: Any) -> None:
        # Python's own transaction handling begins late and never with IMMEDIATE.
        connection.isolation_level = None
        for pragma in (*_PRAGMAS, f"PRAGMA busy_timeout={intervals().lock_wait * 1000:.0f}", *pragmas):
            connection.execute(pragma)

    @event.listens_for(engine, "begin")
    def begin_transaction(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine
