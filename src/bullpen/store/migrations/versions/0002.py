"""Add the agent kind of a worker: whether it speaks ACP or has only a terminal."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("workers", sa.Column("agent_kind", sa.Text()))


def downgrade() -> None:
    with op.batch_alter_table("workers") as table:
        table.drop_column("agent_kind")
