"""Let a token be limited to one session."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    with op.batch_alter_table("tokens") as table:
        table.add_column(sa.Column("session_id", sa.Text()))


def downgrade() -> None:
    # Without its session, such a token could read every session.
    op.execute("DELETE FROM tokens WHERE session_id IS NOT NULL")
    with op.batch_alter_table("tokens") as table:
        table.drop_column("session_id")
