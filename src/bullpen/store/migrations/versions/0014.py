"""Add the page that a web worker shows."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("workers", sa.Column("url", sa.Text()))


def downgrade() -> None:
    # Dropped in place: making the table anew would lose its checks.
    op.drop_column("workers", "url")
