"""Insert, update and upsert statements for all tables, compiled once for each dialect.

Building a statement anew for each row would cost more than the insert itself.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from sqlalchemy import Connection, Dialect, Insert, Table, Update, bindparam

if TYPE_CHECKING:
    from sqlalchemy.dialects import sqlite

# For SQLite: starting and ending a statement costs as much as a small row.
ROWS_PER_STATEMENT = 10

Rows = Sequence[Mapping[str, Any]]
Values = tuple[Any, ...]


def insert_rows(connection: Connection, table: Table, rows: Rows) -> None:
    """Insert rows into a table; their keys must be new."""
    _run(connection, table, rows, _insert)


def insert_values(connection: Connection, table: Table, rows: Sequence[Values]) -> None:
    """Insert many rows into a table, each a tuple of all columns in order."""
    if not rows:
        return
    names = tuple(table.c.keys())
    statement = _compile(connection.dialect, table, names, _insert)
    if not statement.positions:
        named = [dict(zip(names, row, strict=True)) for row in rows]
        connection.exec_driver_sql(statement.sql, named)
        return
    grouped = len(rows) - len(rows) % ROWS_PER_STATEMENT
    if grouped:
        starts = range(0, grouped, ROWS_PER_STATEMENT)
        bound = [tuple(chain.from_iterable(rows[start : start + ROWS_PER_STATEMENT])) for start in starts]
        connection.exec_driver_sql(_with_several_rows(statement.sql), bound)
    if rest := list(rows[grouped:]):
        connection.exec_driver_sql(statement.sql, rest)


def upsert_rows(connection: Connection, table: Table, rows: Rows) -> None:
    """Insert rows into a table; where the primary key exists, replace the given columns."""
    _run(connection, table, rows, _upsert)


def update_rows(connection: Connection, table: Table, rows: Rows) -> None:
    """Replace the given columns of existing rows of a table, by primary key."""
    _run(connection, table, rows, _update)


class _Statement(Struct, frozen=True):
    """A compiled SQL statement."""

    sql: str
    positions: tuple[str, ...] | None  # the columns of a tuple; None if the driver takes a mapping


_Build = Callable[[str, Table, tuple[str, ...]], Insert | Update]


def _run(connection: Connection, table: Table, rows: Rows, build: _Build) -> None:
    """Execute the statement that `build` makes, for all rows."""
    if not rows:
        return
    statement = _compile(connection.dialect, table, tuple(rows[0]), build)
    bound: Any = rows
    if names := statement.positions:
        bound = [tuple([row[name] for name in names]) for row in rows]
    connection.exec_driver_sql(statement.sql, bound)


@lru_cache(maxsize=64)
def _compile(dialect: Dialect, table: Table, names: tuple[str, ...], build: _Build) -> _Statement:
    """Return the compiled statement for a table and some of its columns, from a cache."""
    statement = build(dialect.name, table, names)
    # The keys of an update belong to its WHERE clause, not to the columns to set.
    columns = [name for name in names if statement.is_insert or not table.c[name].primary_key]
    compiled = statement.compile(dialect=dialect, column_keys=columns)
    positions = tuple(compiled.positiontup or ()) if compiled.positional else None
    return _Statement(compiled.string, positions)


@lru_cache(maxsize=64)
def _with_several_rows(insert: str) -> str:
    """Return an INSERT statement for ROWS_PER_STATEMENT rows."""
    head, row = insert.split(" VALUES ")
    return f"{head} VALUES {', '.join([row] * ROWS_PER_STATEMENT)}"


def _insert(_dialect: str, table: Table, _names: tuple[str, ...]) -> Insert:
    """Return the statement that inserts a row with all columns."""
    return table.insert()


def _update(_dialect: str, table: Table, _names: tuple[str, ...]) -> Update:
    """Return the statement that updates a row by its primary key."""
    return table.update().where(*(column == bindparam(column.name) for column in table.primary_key.columns))


def _upsert(dialect: str, table: Table, names: tuple[str, ...]) -> Insert:
    # Both dialects have the same methods; import only the one in use.
    """Return the statement that inserts a row or, if its primary key exists, updates its other columns."""
    insert: sqlite.Insert = import_module(f"sqlalchemy.dialects.{dialect}").insert(table)
    changed = {name: insert.excluded[name] for name in names if not table.c[name].primary_key}
    keys = list(table.primary_key.columns)
    if not changed:
        return insert.on_conflict_do_nothing(index_elements=keys)
    return insert.on_conflict_do_update(index_elements=keys, set_=changed)
