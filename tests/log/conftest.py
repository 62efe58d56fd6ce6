"""Fixtures: each test of the log with a database runs on SQLite and on PostgreSQL."""

from support.databases import cluster, database, store, url

__all__ = ["cluster", "database", "store", "url"]
