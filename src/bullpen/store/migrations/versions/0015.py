"""Add the sandbox level of sessions and of the runs of workers."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    for table in ("sessions", "workers"):
        op.add_column(table, sa.Column("sandbox", sa.Text()))


def downgrade() -> None:
    # Dropped in place: making the tables anew would lose their checks.
    for table in ("sessions", "workers"):
        op.drop_column(table, "sandbox")
