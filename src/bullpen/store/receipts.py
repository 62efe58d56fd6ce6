"""What became of a commit whose answer was lost with the connection. SQLite has no such doubt."""

from sqlalchemy import Connection, text


def take_receipt(connection: Connection) -> str | None:
    """Something to ask about the running transaction with, later, on another connection."""
    if connection.dialect.name != "postgresql":
        return None
    receipt: str = connection.execute(text("SELECT pg_current_xact_id()::text")).scalar_one()
    return receipt


def was_committed(connection: Connection, receipt: str) -> bool | None:
    """Whether the transaction was committed; None while the server does not know yet."""
    query = text("SELECT pg_xact_status(CAST(:receipt AS xid8))")
    match connection.execute(query, {"receipt": receipt}).scalar_one():
        case "committed":
            return True
        case "in progress":
            return None
        case _:
            return False
