"""A private PostgreSQL for the page that speaks of one."""

from support.databases import cluster

__all__ = ["cluster"]
