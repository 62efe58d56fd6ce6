"""Create the first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TABLES = (  # each after those it refers to
    "repositories",
    "sessions",
    "purges",
    "workers",
    "events",
    "messages",
    "snapshots",
    "outbox",
    "outbox_heads",
    "consumed",
    "answers",
    "queue",
    "tokens",
    "codes",
    "settings",
    "agents",
)


def upgrade() -> None:
    op.create_table(
        "repositories",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("removed_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_repositories"),
        sa.UniqueConstraint("path", name="uq_repositories_path"),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("title_folded", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("end_reason", sa.Text()),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("live", sa.Boolean(), nullable=False),
        sa.Column("repo_id", sa.Text()),
        sa.Column("worktree_id", sa.Text()),
        sa.Column("location_path", sa.Text(), nullable=False),
        sa.Column("on_last_disconnect", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repositories.id"], name="fk_sessions_repo_id"),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
    )
    for columns in (
        ["created_at", "id", "type"],
        ["status", "created_at", "id", "type"],
        ["repo_id", "created_at", "id", "type"],
        ["repo_id", "status", "created_at", "id", "type"],
    ):
        op.create_index("_".join(["ix_sessions", *columns]), "sessions", columns)
    live = sa.column("live", sa.Boolean).is_(True)
    op.create_index("ix_sessions_live", "sessions", ["id"], sqlite_where=live, postgresql_where=live)
    op.create_table(
        "purges",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_purges_session_id"),
        sa.PrimaryKeyConstraint("session_id", name="pk_purges"),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text()),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("file_path", sa.Text()),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("activity", sa.Text(), nullable=False),
        sa.Column("activity_why", sa.Text(), nullable=False),
        sa.Column("activity_since", sa.BigInteger(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("cols", sa.Integer(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("pid", sa.BigInteger()),
        sa.Column("exit_code", sa.BigInteger()),
        sa.Column("signal", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_active_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_workers_session_id"),
        sa.PrimaryKeyConstraint("id", name="pk_workers"),
    )
    op.create_index("ix_workers_session_id", "workers", ["session_id"])
    op.create_table(
        "events",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("worker_id", sa.Text()),
        sa.Column("role", sa.Text()),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_events_session_id"),
        sa.PrimaryKeyConstraint("session_id", "seq", name="pk_events"),
    )
    op.create_table(
        "messages",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_messages"),
        sa.UniqueConstraint("session_id", "seq", name="uq_messages_session_id_seq"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_messages_session_id"),
    )
    op.create_index("ix_messages_session_id_timestamp", "messages", ["session_id", "timestamp"])
    op.create_table(
        "snapshots",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("schema", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_snapshots_session_id"),
        sa.PrimaryKeyConstraint("session_id", name="pk_snapshots"),
    )
    op.create_table(
        "outbox",
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("n", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("bytes", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["worker_id"], ["workers.id"], name="fk_outbox_worker_id"),
        sa.PrimaryKeyConstraint("worker_id", "run", "n", name="pk_outbox"),
    )
    op.create_table(
        "outbox_heads",
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["worker_id"], ["workers.id"], name="fk_outbox_heads_worker_id"),
        sa.PrimaryKeyConstraint("worker_id", "run", name="pk_outbox_heads"),
    )
    op.create_table(
        "consumed",
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("run", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["worker_id"], ["workers.id"], name="fk_consumed_worker_id"),
        sa.PrimaryKeyConstraint("worker_id", "run", name="pk_consumed"),
    )
    op.create_table(
        "answers",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("body_hash", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_answers"),
    )
    op.create_index("ix_answers_created_at", "answers", ["created_at"])
    op.create_table(
        "queue",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("worker_id", sa.Text()),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("image_ids", sa.Text(), nullable=False),
        sa.Column("queued_at", sa.BigInteger(), nullable=False),
        sa.Column("client_id", sa.Text()),
        sa.Column("title", sa.Text()),
        sa.Column("scheduled_time", sa.BigInteger()),
        sa.Column("state", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_queue_session_id"),
        sa.PrimaryKeyConstraint("id", name="pk_queue"),
    )
    op.create_index("ix_queue_session_id_position", "queue", ["session_id", "position"])
    op.create_table(
        "tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger()),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("secret_hash", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("hash", name="uq_tokens_hash"),
    )
    op.create_table(
        "codes",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name="pk_codes"),
    )
    op.create_table(
        "settings",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_settings"),
    )
    op.create_table(
        "agents",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_agents"),
    )


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
