"""Storage in SQLite or PostgreSQL: events, their projections, and records."""
