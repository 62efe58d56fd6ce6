"""Add the owner of a terminal: the agent whose command it runs."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("workers", sa.Column("owner", sa.Text()))


def downgrade() -> None:
    with op.batch_alter_table("workers") as table:
        table.drop_column("owner")
