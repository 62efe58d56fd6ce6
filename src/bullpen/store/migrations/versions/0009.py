"""Drop a unique index of messages that their ids make unnecessary."""

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    with op.batch_alter_table("messages") as table:
        table.drop_constraint("uq_messages_session_id_seq", type_="unique")


def downgrade() -> None:
    with op.batch_alter_table("messages") as table:
        table.create_unique_constraint("uq_messages_session_id_seq", ["session_id", "seq"])
