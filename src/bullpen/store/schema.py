"""Create the tables of the database, and migrate them from one revision to another.

Every step is one transaction: a crash leaves the database before it or after it. Alembic is imported only for
a real migration, because it needs some 10 MB of memory.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, create_mock_engine, inspect, text
from sqlalchemy.schema import ExecutableDDLElement

from ..domain.errors import Conflict, Invalid
from .engine import writing_engine
from .fence import LEASE, UNNAMED, FenceOwner, Lease, refuse_if_in_use
from .tables import metadata

REVISIONS: tuple[str, ...] = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
)
HEAD = REVISIONS[-1]
SCRIPTS = Path(__file__).parent / "migrations"

_VERSION_TABLE = """CREATE TABLE IF NOT EXISTS alembic_version (
    version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)"""
_LOCK = 0x62756C6C  # an arbitrary number that every version uses


def prepare(url: str, owner: FenceOwner = UNNAMED, lease: Lease = LEASE) -> None:
    """Create the tables or migrate them to the newest revision; refuse while another server uses them."""
    with _transaction(url) as connection:
        refuse_if_in_use(connection, owner, lease)
        match _revision(connection):
            case None:
                _create(connection)
            case found if found != HEAD:
                _migrate(connection, found, HEAD)


def upgrade(url: str, to: str = "head", owner: FenceOwner = UNNAMED) -> None:
    """Migrate the database up to a revision."""
    with _transaction(url) as connection:
        refuse_if_in_use(connection, owner, LEASE)
        _migrate(connection, _revision(connection), HEAD if to == "head" else to)


def downgrade(url: str, to: str, owner: FenceOwner = UNNAMED) -> None:
    """Migrate the database down to a revision, or to `base`, an empty database.

    Refuse while a server uses it.
    """
    with _transaction(url) as connection:
        refuse_if_in_use(connection, owner, LEASE)
        _migrate(connection, _revision(connection), None if to == "base" else to)


def current(url: str) -> str | None:
    """Return the schema revision of the database; None if it is empty."""
    with _transaction(url) as connection:
        return _revision(connection)


@contextmanager
def _transaction(url: str) -> Iterator[Connection]:
    """Run the block in one transaction, with an exclusive lock on PostgreSQL."""
    # SQLite changes a table by copying it; with foreign keys enforced it could not drop the old one.
    engine = writing_engine(url, "PRAGMA foreign_keys=OFF")
    try:
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            yield connection
    finally:
        engine.dispose()


def _revision(connection: Connection) -> str | None:
    """Return the revision of the database, None if it is empty; raise Conflict for an unknown revision."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if found is not None and found not in REVISIONS:
        raise Conflict(
            f"the database is of a newer Bullpen (revision {found}, this one knows {HEAD}); upgrade Bullpen"
        )
    return found


def _create(connection: Connection) -> None:
    """Create all tables in an empty database; raise Conflict if it has other tables."""
    if inspect(connection).has_table("sessions"):
        raise Conflict("the database has tables of something else; give Bullpen one of its own")
    for statement in creating_statements(connection.engine.url.drivername):
        connection.exec_driver_sql(statement)
    connection.execute(text(_VERSION_TABLE))
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})


@cache
def creating_statements(driver: str) -> tuple[str, ...]:
    """Return the statements that create all tables; compiling them takes longer than running them."""
    statements: list[str] = []

    def add(statement: ExecutableDDLElement, *_: object) -> None:
        statements.append(str(statement.compile(dialect=engine.dialect)))

    engine = create_mock_engine(f"{driver}://", add)
    metadata.create_all(engine, checkfirst=False)
    return tuple(statements)


def _migrate(connection: Connection, start: str | None, to: str | None) -> None:
    """Run Alembic's migrations up or down to another revision; None is an empty database.

    Raise Invalid for an unknown revision, and Conflict if rows would refer to nothing afterwards.
    """
    from alembic import command  # noqa: PLC0415 (see above)
    from alembic.config import Config  # noqa: PLC0415

    if to is not None and to not in REVISIONS:
        raise Invalid(f"there is no revision {to}; known are {', '.join(REVISIONS)}")
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    if _revision_index(to) >= _revision_index(start):
        command.upgrade(config, to or "base")
    else:
        command.downgrade(config, to or "base")
    if connection.dialect.name == "sqlite" and (
        broken := connection.execute(text("PRAGMA foreign_key_check")).first()
    ):
        raise Conflict(f"the migration would leave rows of {broken[0]} that refer to nothing")


def _revision_index(revision: str | None) -> int:
    """Return the position of a known schema revision, counted from 1; 0 for an empty database."""
    return 0 if revision is None else REVISIONS.index(revision) + 1
