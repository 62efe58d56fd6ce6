"""A private PostgreSQL for the journeys that want one."""

from support.databases import cluster

__all__ = ["cluster"]
