"""Check the columns with a fixed set of values, and add an index of messages by time."""

from alembic import op

revision = "0013"
down_revision = "0012"

CHOICES: dict[str, dict[str, tuple[str, ...]]] = {
    "sessions": {
        "type": ("worktree", "quick"),
        "status": ("active", "completed", "cancelled", "error"),
        "on_last_disconnect": ("keep", "terminate"),
    },
    "workers": {
        "state": ("spawning", "active", "exited", "failed", "terminated"),
        "activity": ("unknown", "active", "idle", "asking"),
    },
    "messages": {"role": ("user", "agent", "system")},
    "unseen": {"kind": ("failed", "finished")},
    "tokens": {"scope": ("delegate", "view", "operate", "admin")},
    "codes": {"scope": ("view", "operate", "admin")},
}
# A recording that was made by another program may have other values; its log is read in the same way.
DEFAULTS = {("sessions", "type"): "quick", ("sessions", "on_last_disconnect"): "keep"}


def upgrade() -> None:
    for (table, column), default in DEFAULTS.items():
        listed = _listed(CHOICES[table][column])
        op.execute(f"UPDATE {table} SET {column} = '{default}' WHERE {column} NOT IN ({listed})")
    for table, columns in CHOICES.items():
        with op.batch_alter_table(table) as altered:
            for column, values in columns.items():
                condition = f"{column} IN ({_listed(values)})"
                altered.create_check_constraint(op.f(f"ck_{table}_{column}"), condition)
    op.create_index("ix_messages_timestamp", "messages", ["timestamp"])


def downgrade() -> None:
    op.drop_index("ix_messages_timestamp", "messages")
    for table, columns in CHOICES.items():
        with op.batch_alter_table(table) as altered:
            for column in columns:
                altered.drop_constraint(op.f(f"ck_{table}_{column}"), type_="check")


def _listed(values: tuple[str, ...]) -> str:
    """Return the values as a list in SQL."""
    return ", ".join(f"'{value}'" for value in values)
