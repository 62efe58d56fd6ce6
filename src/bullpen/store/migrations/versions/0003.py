"""Move the message queue into the event log, and add queue settings to repositories."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.drop_table("queue")
    with op.batch_alter_table("repositories") as table:
        table.add_column(sa.Column("queue", sa.Text()))


def downgrade() -> None:
    with op.batch_alter_table("repositories") as table:
        table.drop_column("queue")
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
