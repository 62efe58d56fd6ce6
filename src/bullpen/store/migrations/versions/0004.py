"""Add the table of unseen results: what happened to a worker since a user last looked."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "unseen",
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["worker_id"], ["workers.id"], name="fk_unseen_worker_id"),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name="fk_unseen_session_id"),
        sa.PrimaryKeyConstraint("worker_id", name="pk_unseen"),
    )
    op.create_index("ix_unseen_session_id", "unseen", ["session_id"])


def downgrade() -> None:
    op.drop_table("unseen")
