"""The statements every table is written with, compiled once for each dialect.

Binding the columns of a row anew each time costs more than the insert itself.
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

# Rows that SQLite takes as one statement: to begin and to end one costs it as much as a small row.
TOGETHER = 10

Rows = Sequence[Mapping[str, Any]]
Values = tuple[Any, ...]


def add(connection: Connection, table: Table, rows: Rows) -> None:
    """Inserts rows that must be new."""
    _run(connection, table, rows, _insert)


def add_values(connection: Connection, table: Table, rows: Sequence[Values]) -> None:
    """The same for the many: a row is what stands in the columns, all of them, in the table's order."""
    if not rows:
        return
    names = tuple(table.c.keys())
    statement = _compile(connection.dialect, table, names, _insert)
    if not statement.positions:
        named = [dict(zip(names, row, strict=True)) for row in rows]
        connection.exec_driver_sql(statement.sql, named)
        return
    whole = len(rows) - len(rows) % TOGETHER
    if whole:
        starts = range(0, whole, TOGETHER)
        bound = [tuple(chain.from_iterable(rows[start : start + TOGETHER])) for start in starts]
        connection.exec_driver_sql(_with_several_rows(statement.sql), bound)
    if rest := list(rows[whole:]):
        connection.exec_driver_sql(statement.sql, rest)


def put(connection: Connection, table: Table, rows: Rows) -> None:
    """Inserts rows or, by primary key, replaces the columns given."""
    _run(connection, table, rows, _upsert)


def touch(connection: Connection, table: Table, rows: Rows) -> None:
    """Replaces, by primary key, the columns given of rows that exist."""
    _run(connection, table, rows, _update)


class _Statement(Struct, frozen=True):
    sql: str
    positions: tuple[str, ...] | None  # where the driver wants a tuple; else it takes the row


_Build = Callable[[str, Table, tuple[str, ...]], Insert | Update]


def _run(connection: Connection, table: Table, rows: Rows, build: _Build) -> None:
    if not rows:
        return
    statement = _compile(connection.dialect, table, tuple(rows[0]), build)
    bound: Any = rows
    if names := statement.positions:
        bound = [tuple([row[name] for name in names]) for row in rows]
    connection.exec_driver_sql(statement.sql, bound)


@lru_cache(maxsize=64)
def _compile(dialect: Dialect, table: Table, names: tuple[str, ...], build: _Build) -> _Statement:
    statement = build(dialect.name, table, names)
    # Keys of an update stand in its WHERE; they must not be taken for columns to set.
    columns = [name for name in names if statement.is_insert or not table.c[name].primary_key]
    compiled = statement.compile(dialect=dialect, column_keys=columns)
    positions = tuple(compiled.positiontup or ()) if compiled.positional else None
    return _Statement(compiled.string, positions)


@lru_cache(maxsize=64)
def _with_several_rows(insert: str) -> str:
    head, row = insert.split(" VALUES ")
    return f"{head} VALUES {', '.join([row] * TOGETHER)}"


def _insert(_dialect: str, table: Table, _names: tuple[str, ...]) -> Insert:
    return table.insert()


def _update(_dialect: str, table: Table, _names: tuple[str, ...]) -> Update:
    return table.update().where(*(column == bindparam(column.name) for column in table.primary_key.columns))


def _upsert(dialect: str, table: Table, names: tuple[str, ...]) -> Insert:
    # Both have the same methods; only the one in use is loaded.
    insert: sqlite.Insert = import_module(f"sqlalchemy.dialects.{dialect}").insert(table)
    changed = {name: insert.excluded[name] for name in names if not table.c[name].primary_key}
    keys = list(table.primary_key.columns)
    if not changed:
        return insert.on_conflict_do_nothing(index_elements=keys)
    return insert.on_conflict_do_update(index_elements=keys, set_=changed)
