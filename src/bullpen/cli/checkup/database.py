"""Check that the database is undamaged and has a known revision."""

from pathlib import Path
from typing import TYPE_CHECKING

from ...domain.errors import Invalid
from .finding import Finding, fail, ok, warn

if TYPE_CHECKING:
    from sqlalchemy import Connection

_RESTORE = "stop the server and restore a backup (docs/operations.md)"


def check_database(url: str) -> Finding:
    """Check a database without writing to it, creating it or blocking a server that uses it."""
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415  (only this check needs it)

    from ...store.engine import parse_url, reading_engine, sqlite_file  # noqa: PLC0415

    try:
        file = sqlite_file(parse_url(url))
        if file is not None and not _has_content(file):
            return ok("database", "does not exist yet; the server creates it")
        engine = reading_engine(url)
    except Invalid as error:
        return fail("database", str(error), "correct BULLPEN_DATABASE_URL")
    try:
        with engine.connect() as connection:
            return _check_connection(connection)
    except DBAPIError as error:
        advice = _RESTORE if file else "check that PostgreSQL runs and accepts this connection"
        return fail("database", f"cannot be read: {_first_line(error.orig)}", advice)
    finally:
        engine.dispose()


def _check_connection(connection: "Connection") -> Finding:
    """Check the integrity and the revision of an open database."""
    from sqlalchemy import inspect, text  # noqa: PLC0415

    from ...store.schema import HEAD, REVISIONS  # noqa: PLC0415

    kind = connection.dialect.name
    if kind == "sqlite" and (result := connection.execute(text("PRAGMA quick_check(1)")).scalar()) != "ok":
        return fail("database", f"damaged: {_first_line(result)}", _RESTORE)
    if not inspect(connection).has_table("alembic_version"):
        return ok("database", f"{kind}, empty; the server fills it")
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if revision not in REVISIONS:
        return fail("database", f"{kind}, of a newer Bullpen (revision {revision})", "upgrade Bullpen")
    if revision != HEAD:
        advice = "nothing to do: the server upgrades it at its next start"
        return warn("database", f"{kind}, revision {revision}, older than {HEAD}", advice)
    return ok("database", f"{kind}, revision {revision}{', undamaged' if kind == 'sqlite' else ''}")


def _has_content(file: Path) -> bool:
    """Return whether a file exists and is not empty."""
    return file.exists() and file.stat().st_size > 0


def _first_line(text: object) -> str:
    """Return the first line of a message."""
    return (str(text).splitlines() or ["no reason given"])[0]
