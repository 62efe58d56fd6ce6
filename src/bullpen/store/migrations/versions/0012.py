"""Add the time at which the result of a tool call was filled into its message."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("messages", sa.Column("updated_at", sa.BigInteger()))
    updated = sa.text("updated_at IS NOT NULL")
    op.create_index(
        "ix_messages_updated",
        "messages",
        ["session_id", "updated_at"],
        sqlite_where=updated,
        postgresql_where=updated,
    )


def downgrade() -> None:
    op.drop_index("ix_messages_updated", "messages")
    with op.batch_alter_table("messages") as table:
        table.drop_column("updated_at")
