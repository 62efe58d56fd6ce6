"""Add which delegate started a session."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_DELEGATED = sa.column("started_by").is_not(None)


def upgrade() -> None:
    op.add_column("sessions", sa.Column("started_by", sa.Text()))
    op.create_index(
        "ix_sessions_started_by",
        "sessions",
        ["started_by"],
        sqlite_where=_DELEGATED,
        postgresql_where=_DELEGATED,
    )


def downgrade() -> None:
    op.drop_index("ix_sessions_started_by", "sessions")
    op.drop_column("sessions", "started_by")
