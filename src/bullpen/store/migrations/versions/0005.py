"""A token may open one session only."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    with op.batch_alter_table("tokens") as table:
        table.add_column(sa.Column("session_id", sa.Text()))


def downgrade() -> None:
    # Without its session such a token would open all of them.
    op.execute("DELETE FROM tokens WHERE session_id IS NOT NULL")
    with op.batch_alter_table("tokens") as table:
        table.drop_column("session_id")
