"""Add the sandbox level of sessions and of the runs of workers."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    for table in ("sessions", "workers"):
        op.add_column(table, sa.Column("sandbox", sa.Text()))


def downgrade() -> None:
    for name in ("sessions", "workers"):
        with op.batch_alter_table(name) as table:
            table.drop_column("sandbox")
