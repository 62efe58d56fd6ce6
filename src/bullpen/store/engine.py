"""Connections to SQLite and PostgreSQL: how they are opened, and which of their errors pass by themselves."""

import os
import sqlite3
import stat
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from ..domain.errors import Invalid

DRIVERS = ("sqlite", "postgresql+psycopg")
READERS = 2

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA busy_timeout=5000",
    "PRAGMA journal_size_limit=67108864",  # a long reader may let the WAL grow; it shrinks again afterwards
)

_PASSING_SQLITE = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,  # also said of a file that is sound when one read of it fails with EIO
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,  # a file system that was remounted after an error
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PROTOCOL,
    }
)
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
        # The low byte is the primary code; the rest says which call failed.
        return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF in _PASSING_SQLITE
    state: str | None = getattr(error.orig, "sqlstate", None)
    if state is None:  # no answer at all: the connection broke or never came about
        return error.connection_invalidated or isinstance(error, OperationalError)
    return state.startswith(_PASSING_POSTGRESQL)


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
