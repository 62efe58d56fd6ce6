"""Fixture: a private PostgreSQL cluster for the examples of docs/operations.md."""

from support.databases import cluster

__all__ = ["cluster"]
