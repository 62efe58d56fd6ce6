"""Saved snapshots, from which a fold starts, so that opening a long session is as fast as a short one."""

import msgspec

from ..domain.snapshot import Snapshot
from .append import Append
from .projections import Row

SAVE_INTERVAL_EVENTS = 1000

# Increment it when the fold or the snapshot changes; older saved snapshots are then ignored.
SCHEMA = 18

_decoder = msgspec.json.Decoder(Snapshot)


def row_if_due(append: Append) -> Row | None:
    """Return the row of the snapshot after an append, to be saved with it; None if no save is due.

    One is due each time the event numbers cross a multiple of SAVE_INTERVAL_EVENTS.
    """
    last = append.snapshot.last_seq
    if last // SAVE_INTERVAL_EVENTS == (last - len(append.entries)) // SAVE_INTERVAL_EVENTS:
        return None
    return saved_row(append.snapshot)


def saved_row(snapshot: Snapshot) -> Row:
    """Return the database row for a saved snapshot."""
    body = msgspec.json.encode(snapshot)
    return {"session_id": snapshot.id, "seq": snapshot.last_seq, "schema": SCHEMA, "body": body}


def read_snapshot(schema: int, body: bytes) -> Snapshot | None:
    """Return the snapshot in a saved row, or None if it has another schema or is damaged."""
    if schema != SCHEMA:
        return None
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
