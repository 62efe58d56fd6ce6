"""Add full-text search: documents, how far each log is indexed, and the word index of each database."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

WORDS = {
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


def upgrade() -> None:
    op.create_table(
        "search_documents",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("worker_id", sa.Text()),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("run", sa.Integer()),
        sa.Column("offset", sa.BigInteger()),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_search_documents_session_id"),
        sa.PrimaryKeyConstraint("id", name="pk_search_documents"),
    )
    _index("uq_search_documents_event", ["session_id", "seq"], sa.text('"offset" IS NULL'), unique=True)
    _index("ix_search_documents_terminal", ["worker_id", "run", "offset"], sa.text('"offset" IS NOT NULL'))
    op.create_table(
        "search_marks",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_search_marks_session_id"),
        sa.PrimaryKeyConstraint("session_id", name="pk_search_marks"),
    )
    op.create_table(
        "search_terminals",
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("over", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["worker_id"], ["workers.id"], name="fk_search_terminals_worker_id"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_search_terminals_session_id"),
        sa.PrimaryKeyConstraint("worker_id", name="pk_search_terminals"),
    )
    op.create_index("ix_search_terminals_session_id", "search_terminals", ["session_id"])
    for statement in WORDS[op.get_context().dialect.name]:
        op.execute(statement)


def downgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        op.execute("DROP TABLE search_words")
    op.drop_table("search_terminals")
    op.drop_table("search_marks")
    op.drop_table("search_documents")


def _index(name: str, columns: list[str], where: sa.TextClause, unique: bool = False) -> None:
    """Create an index of the search documents for which `where` is true."""
    op.create_index(
        name, "search_documents", columns, unique=unique, sqlite_where=where, postgresql_where=where
    )
