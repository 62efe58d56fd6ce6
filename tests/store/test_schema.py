"""Migrations keep the data up, down and up again; a crash during a migration changes nothing."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Integer,
    LargeBinary,
    MetaData,
    Text,
    inspect,
    text,
)
from sqlalchemy.engine.interfaces import ReflectedIndex
from sqlalchemy.exc import IntegrityError

from bullpen.domain.errors import Conflict, Invalid
from bullpen.domain.events import Draft, WorkerReady
from bullpen.store import schema
from bullpen.store.database import Database
from bullpen.store.engine import writing_engine
from bullpen.store.events import EventStore
from bullpen.store.records import RecordStore
from bullpen.store.tables import VALUES, metadata
from support.sample_events import append_to, error_draft, new_session_with_worker

# A revision of a later version: it adds a column, a table with data of another table, and an index.
NEXT = f"""
import os, signal
import sqlalchemy as sa
from alembic import op

revision = "next"
down_revision = "{schema.HEAD}"


def upgrade():
    op.add_column("sessions", sa.Column("colour", sa.Text(), server_default="grey", nullable=False))
    op.create_table("flags", sa.Column("session_id", sa.Text(), primary_key=True))
    op.execute("INSERT INTO flags SELECT id FROM sessions")
    op.create_index("ix_flags_session_id", "flags", ["session_id"])
    if os.environ.get("DIE") == "up":
        os.kill(os.getpid(), signal.SIGKILL)


def downgrade():
    op.drop_index("ix_flags_session_id", "flags")
    op.drop_table("flags")
    with op.batch_alter_table("sessions") as table:
        table.drop_column("colour")
    if os.environ.get("DIE") == "down":
        os.kill(os.getpid(), signal.SIGKILL)
"""

# The cells that a downgrade removes on purpose, as regular expressions for table/row/column.
REMOVED_BY_DOWNGRADE = {
    "0015": "(sessions|workers)/.*/sandbox",
    "0014": "workers/.*/url",
    "0013": "",  # checks and an index only
    "0012": "messages/.*/updated_at",
    "0011": "server/.*",  # the next server claims the database again
    "0010": "workers/.*/owner",
    "0009": "",  # an index only
    "0008": "sessions/.*/started_by",
    "0007": "usage/.*",
    "0006": "search_(documents|marks|terminals)/.*",  # indexed again from the logs
    "0005": "tokens/full/.*",  # tokens of one session: without the column they would give access to all
    "0004": "unseen/.*",
    "0003": "repositories/.*/queue",
    "0002": "workers/.*/agent_kind",
    "0001": ".*",  # down to the empty database
}
REMOVED_BY_UPGRADE = {"0003": "queue/.*"}  # from this revision on, the queue is in the log


# The columns that have one of some texts.
CHOICES: dict[tuple[str, str], tuple[str, ...]] = {
    (table.name, column.name): column.info[VALUES]
    for table in metadata.sorted_tables
    for column in table.columns
    if VALUES in column.info
}


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """Return a directory with the migrations of Bullpen and one more."""
    folder = tmp_path / "migrations"
    (folder / "versions").mkdir(parents=True)
    for source in ("env.py", *(f"versions/{revision}.py" for revision in schema.REVISIONS)):
        (folder / source).write_bytes((schema.SCRIPTS / source).read_bytes())
    (folder / "versions" / "next.py").write_text(NEXT)
    return folder


def migrate(scripts: Path, verb: str, *arguments: str, die: str = "") -> int | None:
    """Run a migration in a fork, which kills itself inside the migration if `die` names it."""
    process = multiprocessing.get_context("fork").Process(
        target=migrate_here, args=(scripts, die, verb, *arguments)
    )
    process.start()
    process.join()
    return process.exitcode


def migrate_here(scripts: Path, die: str, verb: str, *arguments: str) -> None:
    """Migrate as the later version does."""
    os.environ["DIE"] = die
    schema.SCRIPTS, schema.REVISIONS, schema.HEAD = scripts, (*schema.REVISIONS, "next"), "next"
    getattr(schema, verb)(*arguments)


def dump(url: str) -> dict[str, object]:
    """Return everything in the database: columns, foreign keys, indexes, checks and data."""
    engine = writing_engine(url)
    try:
        with engine.begin() as connection:
            inspector = inspect(connection)
            tables = sorted(inspector.get_table_names())
            return {
                "columns": {
                    table: [(c["name"], str(c["type"]), c["nullable"]) for c in inspector.get_columns(table)]
                    for table in tables
                },
                "keys": {
                    table: sorted(
                        (tuple(k["constrained_columns"]), k["referred_table"])
                        for k in inspector.get_foreign_keys(table)
                    )
                    for table in tables
                },
                "indexes": {
                    table: sorted(
                        (str(index["name"]), tuple(index["column_names"]), condition(index))
                        for index in inspector.get_indexes(table)
                    )
                    for table in tables
                },
                "checks": {
                    table: sorted(
                        (str(check["name"]), check["sqltext"])
                        for check in inspector.get_check_constraints(table)
                    )
                    for table in tables
                },
                "data": {
                    table: sorted(map(repr, connection.execute(text(f'SELECT * FROM "{table}"')).all()))
                    for table in tables
                },
            }
    finally:
        engine.dispose()


def is_counted(table: str) -> bool:
    """Return whether `cells` has the cells of a table: not of Alembic's, and not of the word index."""
    return not table.startswith(("search_words", "alembic_"))


def cells(url: str) -> dict[str, object]:
    """Return every value that is not null, by table/row/column."""
    engine = writing_engine(url)
    try:
        with engine.begin() as connection:
            keys = {
                table: key["constrained_columns"]
                for (_, table), key in inspect(connection).get_multi_pk_constraint().items()
                if is_counted(table)
            }
            return {
                "/".join([table, *(str(row[name]) for name in key), column]): value
                for table, key in keys.items()
                for row in connection.execute(text(f'SELECT * FROM "{table}"')).mappings()
                for column, value in row.items()
                if value is not None
            }
    finally:
        engine.dispose()


def fill_empty_tables(url: str) -> None:
    """Insert two rows into every empty table: one with all columns, and one without the nullable columns."""
    engine = writing_engine(url)
    try:
        with engine.begin() as connection:
            empty = [
                table
                for table in filter(is_counted, inspect(connection).get_table_names())
                if connection.execute(text(f'SELECT 1 FROM "{table}" LIMIT 1')).first() is None
            ]
            found = MetaData()
            found.reflect(connection, only=empty)  # and the tables that these refer to
            for table in (each for each in found.sorted_tables if each.name in empty):
                full = {column.name: some_value(column, "full") for column in table.columns}
                bare = {c.name: some_value(c, "bare") for c in table.columns if not c.nullable}
                connection.execute(table.insert(), full)
                connection.execute(table.insert(), bare)
    finally:
        engine.dispose()


def some_value(column: Column[object], row: str) -> object:
    if column.primary_key or column.foreign_keys:
        return row if isinstance(column.type, Text) else 1 + (row == "full")
    if choices := CHOICES.get((column.table.name, column.name)):
        return choices[row == "full"]
    values: dict[type, object] = {
        Boolean: row == "full",
        BigInteger: 2**40,
        Integer: 2**30,
        Double: 0.1,
        LargeBinary: b"\x00\xff" + row.encode(),
        Text: f"{row} {column} '%:☃",
    }
    return next(value for kind, value in values.items() if isinstance(column.type, kind))


def without(removed: str, cells: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in cells.items() if not re.fullmatch(removed, name)}


def condition(index: ReflectedIndex) -> str:
    """Return the condition of a partial index, or an empty string."""
    found = (value for key, value in index.get("dialect_options", {}).items() if key.endswith("_where"))
    return str(next(found, ""))


async def fill(url: str) -> None:
    async with Database.open(url) as database:
        store = EventStore(database)
        append = new_session_with_worker()
        await store.commit(append)
        ready = Draft(WorkerReady(pid=1), "w", "shell")
        await store.commit(
            append_to(append.snapshot, ready, *(error_draft(f"{n} ☃", "w") for n in range(1200)))
        )
        await RecordStore(database).set_setting("colour", "blue")


def test_a_new_database_equals_a_migrated_one(url: str, tmp_path: Path) -> None:
    schema.prepare(url)
    new = dump(url)
    schema.downgrade(url, "base")
    assert schema.current(url) is None
    schema.upgrade(url)
    assert dump(url) == new
    tables = {name for name in new["columns"] if not name.startswith("search_words")}  # type: ignore[attr-defined]
    assert set(metadata.tables) == tables - {"alembic_version"}


def test_the_database_refuses_other_values_of_enumerated_columns(url: str) -> None:
    schema.prepare(url)
    fill_empty_tables(url)
    assert {("sessions", "status"), ("messages", "role")} <= set(CHOICES)
    engine = writing_engine(url)
    for table, column in CHOICES:
        with pytest.raises(IntegrityError, match=f"ck_{table}_{column}"), engine.begin() as connection:
            connection.execute(text(f"UPDATE {table} SET {column} = 'other'"))
    engine.dispose()


def test_messages_have_an_index_by_time_alone(url: str) -> None:
    schema.prepare(url)
    indexes = dump(url)["indexes"]["messages"]  # type: ignore[index]
    assert ("ix_messages_timestamp", ("timestamp",), "") in indexes


def test_the_newest_revision_is_the_last_script() -> None:
    names = sorted(path.stem for path in (schema.SCRIPTS / "versions").glob("*.py"))
    assert tuple(names) == schema.REVISIONS


async def test_a_downgrade_and_an_upgrade_keep_the_data(url: str, scripts: Path) -> None:
    await fill(url)
    first = dump(url)
    assert migrate(scripts, "upgrade", url) == 0
    second = dump(url)
    assert second != first
    assert migrate(scripts, "downgrade", url, schema.HEAD) == 0
    assert dump(url) == first
    assert migrate(scripts, "upgrade", url) == 0
    assert dump(url) == second


def test_each_migration_removes_only_the_listed_cells(url: str) -> None:
    schema.prepare(url)
    fill_empty_tables(url)
    assert {name.split("/")[0] for name in cells(url)} == set(metadata.tables)
    for older, revision in reversed(list(zip(("base", *schema.REVISIONS), schema.REVISIONS, strict=False))):
        kept = without(REMOVED_BY_DOWNGRADE[revision], cells(url))
        schema.downgrade(url, older)
        assert cells(url) == kept, revision
        fill_empty_tables(url)
        kept = without(REMOVED_BY_UPGRADE.get(revision, ""), cells(url))
        schema.upgrade(url, revision)
        assert cells(url) == kept, revision
        schema.downgrade(url, older)


@pytest.mark.parametrize(
    ("verb", "to", "die"), [("upgrade", "head", "up"), ("downgrade", schema.HEAD, "down")]
)
async def test_a_crash_during_a_migration_leaves_the_database_unchanged(
    url: str, scripts: Path, verb: str, to: str, die: str
) -> None:
    await fill(url)
    if verb == "downgrade":
        assert migrate(scripts, "upgrade", url) == 0
    before = dump(url)
    assert migrate(scripts, verb, url, to, die=die) == -signal.SIGKILL
    assert dump(url) == before
    assert migrate(scripts, verb, url, to) == 0
    assert dump(url) != before


async def test_a_server_upgrades_an_older_database_at_its_start(url: str, scripts: Path) -> None:
    await fill(url)
    assert migrate(scripts, "prepare", url) == 0
    columns = dump(url)["columns"]
    assert "colour" in str(columns)


async def test_a_newer_database_is_refused_in_one_sentence(url: str, scripts: Path) -> None:
    schema.prepare(url)
    assert migrate(scripts, "upgrade", url) == 0
    with pytest.raises(Conflict, match=rf"newer Bullpen \(revision next, this one knows {schema.HEAD}\)"):
        async with Database.open(url):
            pass


def test_an_unknown_revision_is_refused(url: str) -> None:
    schema.prepare(url)
    with pytest.raises(Invalid, match="no revision 7777"):
        schema.upgrade(url, "7777")


def test_an_up_to_date_database_is_not_changed(url: str) -> None:
    assert schema.current(url) is None
    schema.prepare(url)
    before = dump(url)
    schema.prepare(url)
    schema.upgrade(url)
    assert (schema.current(url), dump(url)) == (schema.HEAD, before)


def test_a_database_with_tables_of_another_program_is_refused(url: str) -> None:
    engine = writing_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE sessions (mine INTEGER)"))
    engine.dispose()
    with pytest.raises(Conflict, match="tables of something else"):
        schema.prepare(url)


def test_an_ordinary_start_does_not_load_the_migration_library(tmp_path: Path) -> None:
    program = (
        "import sys; from bullpen.store import schema; import bullpen.store.database;"
        "schema.prepare(sys.argv[1]); schema.prepare(sys.argv[1]); sys.exit('alembic' in sys.modules)"
    )
    url = f"sqlite:///{tmp_path}/bullpen.db"
    assert subprocess.run([sys.executable, "-c", program, url], check=False).returncode == 0
