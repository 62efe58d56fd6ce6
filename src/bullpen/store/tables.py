"""The tables of the database, as the newest migration leaves them. Times are milliseconds since the epoch.

`events` is the truth; sessions, workers and messages are projections of it, written in the same transaction.
outbox, consumed and answers make a crash between two steps harmless. The rest are records.
"""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    column,
    event,
)
from sqlalchemy.schema import ExecutableDDLElement

from ..domain.states import Activity, SessionStatus, WorkerState

VALUES = "values"  # key of the info of a column: the texts that it may have

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)


def _choice(name: str, values: Iterable[str]) -> Column[str]:
    """Return a column that has one of these texts; the database checks it."""
    listed = ", ".join(f"'{value}'" for value in values)
    check = CheckConstraint(f"{name} IN ({listed})", name=name)
    return Column(name, Text, check, nullable=False, info={VALUES: tuple(values)})


def _session_id(*, primary_key: bool = False, index: bool = False) -> Column[str]:
    """Return a column with the id of a session."""
    foreign = ForeignKey("sessions.id")
    return Column("session_id", Text, foreign, nullable=False, primary_key=primary_key, index=index)


def _worker_id() -> Column[str]:
    """Return a primary key column with the id of a worker."""
    return Column("worker_id", Text, ForeignKey("workers.id"), primary_key=True)


def _where(condition: ColumnElement[bool]) -> dict[str, Any]:
    """Return the options of a partial index; those of PostgreSQL are set later.

    Naming that dialect here would import it.
    """
    return {"sqlite_where": condition, "info": {"where": condition}}


@event.listens_for(metadata, "before_create")
def _set_postgresql_options(_: MetaData, connection: Connection, **_options: Any) -> None:
    """Set the conditions of partial indexes for PostgreSQL before the tables are created."""
    if connection.dialect.name != "postgresql":
        return
    for index in (index for table in metadata.sorted_tables for index in table.indexes):
        if "where" in index.info:
            index.dialect_options["postgresql"]["where"] = index.info["where"]


repositories = Table(
    "repositories",
    metadata,
    Column("id", Text, primary_key=True),
    Column("path", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("removed_at", BigInteger),  # the row stays, hidden, while sessions refer to it
    Column("queue", Text),  # settings that the queues of its sessions inherit, as JSON
)

_LIVE = column("live", Boolean).is_(True)
_DELEGATED = column("started_by", Text).is_not(None)

sessions = Table(
    "sessions",
    metadata,
    Column("id", Text, primary_key=True),
    _choice("type", ("worktree", "quick")),
    Column("title", Text, nullable=False),
    Column("title_folded", Text, nullable=False),  # searched by `q`, because databases differ in case rules
    _choice("status", SessionStatus),
    Column("end_reason", Text),
    Column("metadata", Text, nullable=False),
    Column("live", Boolean, nullable=False),
    Column("repo_id", Text, ForeignKey("repositories.id")),
    Column("worktree_id", Text),
    Column("location_path", Text, nullable=False),
    _choice("on_last_disconnect", ("keep", "terminate")),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("started_by", Text),  # a delegate
    Column("sandbox", Text),  # the least level of its agents
    # Each index has all columns that a list is filtered and sorted by, so that counting reads no rows.
    Index(None, "created_at", "id", "type"),
    Index(None, "status", "created_at", "id", "type"),
    Index(None, "repo_id", "created_at", "id", "type"),
    Index(None, "repo_id", "status", "created_at", "id", "type"),
    # The few sessions that a server must open when it starts.
    Index("ix_sessions_live", "id", **_where(_LIVE)),
    # The few sessions that delegates started.
    Index("ix_sessions_started_by", "started_by", **_where(_DELEGATED)),
)

purges = Table(  # sessions that are being deleted, and hidden until then
    "purges",
    metadata,
    _session_id(primary_key=True),
)

workers = Table(
    "workers",
    metadata,
    Column("id", Text, primary_key=True),
    _session_id(index=True),
    Column("position", Integer, nullable=False),
    Column("type", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("agent_id", Text),
    Column("workspace", Text, nullable=False),
    Column("file_path", Text),
    _choice("state", WorkerState),
    _choice("activity", Activity),
    Column("activity_why", Text, nullable=False),
    Column("activity_since", BigInteger, nullable=False),
    Column("run", Integer, nullable=False),
    Column("cols", Integer, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("pid", BigInteger),
    Column("exit_code", BigInteger),
    Column("signal", Text),
    Column("error", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("last_active_at", BigInteger, nullable=False),
    Column("agent_kind", Text),
    Column("owner", Text),
    Column("url", Text),
    Column("sandbox", Text),  # the level of the current run
)

events = Table(
    "events",
    metadata,
    _session_id(primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("type", Text, nullable=False),
    Column("worker_id", Text),
    Column("role", Text),
    Column("timestamp", BigInteger, nullable=False),
    Column("data", Text, nullable=False),
)

_IS_UPDATED = column("updated_at", BigInteger).is_not(None)

messages = Table(
    "messages",
    metadata,
    Column("id", Text, primary_key=True),  # made from session and seq, so these need no unique index
    _session_id(),
    Column("seq", BigInteger, nullable=False),
    _choice("role", ("user", "agent", "system")),
    Column("content", Text, nullable=False),
    Column("timestamp", BigInteger, nullable=False, index=True),
    Column("updated_at", BigInteger),  # when the result of a tool call was filled in
    Index(None, "session_id", "timestamp"),
    # The messages that have changed since they were written.
    Index("ix_messages_updated", "session_id", "updated_at", **_where(_IS_UPDATED)),
)

unseen = Table(  # failed workers and ended turns that no user has seen yet
    "unseen",
    metadata,
    _worker_id(),
    _session_id(index=True),
    _choice("kind", ("failed", "finished")),
    Column("seq", BigInteger, nullable=False),
    Column("timestamp", BigInteger, nullable=False),
    Column("detail", Text, nullable=False),
)

usage = Table(  # a row for each usage report of an agent, and one for the end of each turn
    "usage",
    metadata,
    _session_id(primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("worker_id", Text),
    Column("timestamp", BigInteger, nullable=False, index=True),
    Column("prompt_id", Text),
    Column("turns", Integer, nullable=False),
    Column("cost", Double, nullable=False),
    Column("currency", Text),
    *(
        Column(f"{name}_tokens", BigInteger, nullable=False)
        for name in ("input", "output", "cached_read", "cached_write", "thought", "total")
    ),
)

_IS_EVENT = column("offset").is_(None)
_IS_TERMINAL = column("offset").is_not(None)


search_documents = Table(  # searchable texts; ids grow with time, so that the newest are the highest
    "search_documents",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    _session_id(),
    Column("seq", BigInteger, nullable=False),
    Column("worker_id", Text),
    Column("type", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("timestamp", BigInteger, nullable=False),
    Column("text", Text, nullable=False),
    Column("run", Integer),  # of a terminal's recording, as is the offset
    Column("offset", BigInteger),
    Index("uq_search_documents_event", "session_id", "seq", unique=True, **_where(_IS_EVENT)),
    Index("ix_search_documents_terminal", "worker_id", "run", "offset", **_where(_IS_TERMINAL)),
)

search_marks = Table(  # how far the log of a session is indexed
    "search_marks",
    metadata,
    _session_id(primary_key=True),
    Column("seq", BigInteger, nullable=False),
)

search_terminals = Table(  # how far terminal output is indexed; over: the run is indexed completely
    "search_terminals",
    metadata,
    _worker_id(),
    _session_id(index=True),
    Column("run", Integer, nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("over", Boolean, nullable=False),
)

# The word index of each database; migration 0006.py creates the same.
SEARCH_WORDS = {
    "sqlite": (
        "CREATE VIRTUAL TABLE search_words USING fts5"
        "(text, content='search_documents', content_rowid='id', tokenize='unicode61 remove_diacritics 2')",
        "CREATE TRIGGER search_documents_added AFTER INSERT ON search_documents BEGIN "
        "INSERT INTO search_words(rowid, text) VALUES (new.id, new.text); END",
        "CREATE TRIGGER search_documents_removed AFTER DELETE ON search_documents BEGIN "
        "INSERT INTO search_words(search_words, rowid, text) VALUES ('delete', old.id, old.text); END",
    ),
    "postgresql": (
        "CREATE INDEX ix_search_documents_words ON search_documents USING gin (to_tsvector('simple', text))",
    ),
}


def _ddl(statement: str, dialect: str) -> ExecutableDDLElement:
    """Return a DDL statement that is executed only for one dialect."""
    return DDL(statement).execute_if(dialect=dialect)  # type: ignore[no-untyped-call]


for _dialect, _statements in SEARCH_WORDS.items():
    for _statement in _statements:
        event.listen(search_documents, "after_create", _ddl(_statement, _dialect))

snapshots = Table(
    "snapshots",
    metadata,
    _session_id(primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("schema", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

outbox = Table(
    "outbox",
    metadata,
    _worker_id(),
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("n", BigInteger, primary_key=True, autoincrement=False),
    Column("bytes", LargeBinary, nullable=False),
)

outbox_heads = Table(  # the last number of each run, kept after its lines are deleted
    "outbox_heads",
    metadata,
    _worker_id(),
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("n", BigInteger, nullable=False),
)

consumed = Table(
    "consumed",
    metadata,
    _worker_id(),
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("offset", BigInteger, nullable=False),
)

answers = Table(
    "answers",
    metadata,
    Column("key", Text, primary_key=True),
    Column("body_hash", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False, index=True),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("hash", Text, nullable=False, unique=True),
    _choice("scope", ("delegate", "view", "operate", "admin")),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger),
    Column("expires_at", BigInteger),
    Column("secret_hash", Text),
    Column("session_id", Text),  # a share link: the only session that the token can read
)

codes = Table(  # login codes, each valid once
    "codes",
    metadata,
    Column("hash", Text, primary_key=True),
    _choice("scope", ("view", "operate", "admin")),
    Column("expires_at", BigInteger, nullable=False),
)

IMPORTED = "imported:"  # prefix of the setting that marks an imported session

settings = Table(
    "settings",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

server = Table(  # one row: see fence.py
    "server",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, nullable=False),
    Column("commits", BigInteger, nullable=False),
    Column("owner", Text, nullable=False),
    Column("home", Text, nullable=False),
    Column("storage", Text, nullable=False),
    Column("heartbeat", BigInteger, nullable=False),
)

agents = Table(
    "agents",
    metadata,
    Column("id", Text, primary_key=True),
    Column("definition", Text, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)
