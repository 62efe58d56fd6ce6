"""Fixtures: each test of the store with a database runs on SQLite and on PostgreSQL."""

from support.databases import cluster, database, store, url

__all__ = ["cluster", "database", "store", "url"]
