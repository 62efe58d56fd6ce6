"""Add the usage table: tokens and costs of turns."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "usage",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("worker_id", sa.Text()),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.Column("prompt_id", sa.Text()),
        sa.Column("turns", sa.Integer(), nullable=False),
        sa.Column("cost", sa.Double(), nullable=False),
        sa.Column("currency", sa.Text()),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cached_read_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cached_write_tokens", sa.BigInteger(), nullable=False),
        sa.Column("thought_tokens", sa.BigInteger(), nullable=False),
        sa.Column("total_tokens", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_usage_session_id"),
        sa.PrimaryKeyConstraint("session_id", "seq", name="pk_usage"),
    )
    op.create_index("ix_usage_timestamp", "usage", ["timestamp"])


def downgrade() -> None:
    op.drop_table("usage")
