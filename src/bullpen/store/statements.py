"""The few statements the tables share, built once for each dialect."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Insert, Table
from sqlalchemy.dialects import postgresql, sqlite


def add(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows that must be new."""
    if rows:
        connection.execute(_insert(table), rows)


def put(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows or replaces the columns given, by primary key."""
    if rows:
        connection.execute(_upsert(connection.dialect.name, table, frozenset(rows[0])), rows)


@lru_cache
def _insert(table: Table) -> Insert:
    return table.insert()


@lru_cache
def _upsert(dialect: str, table: Table, names: frozenset[str]) -> Insert:
    insert = postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
    keys = list(table.primary_key.columns)
    changed = {name: insert.excluded[name] for name in sorted(names) if not table.c[name].primary_key}
    return insert.on_conflict_do_update(index_elements=keys, set_=changed)
