"""Saved snapshots: where a fold starts, so that opening a long session takes no longer than a short one."""

import msgspec

from ..domain.snapshot import Snapshot
from .append import Append
from .projections import Row

EVERY = 1000

# Raise it whenever the fold or the snapshot changes: what was saved before is then folded anew.
SCHEMA = 14

_decoder = msgspec.json.Decoder(Snapshot)


def due_row(append: Append) -> Row | None:
    """The snapshot to save with an append: one each time the numbers cross a multiple of EVERY."""
    last = append.snapshot.last_seq
    if last // EVERY == (last - len(append.entries)) // EVERY:
        return None
    return saved_row(append.snapshot)


def saved_row(snapshot: Snapshot) -> Row:
    body = msgspec.json.encode(snapshot)
    return {"session_id": snapshot.id, "seq": snapshot.last_seq, "schema": SCHEMA, "body": body}


def read_snapshot(schema: int, body: bytes) -> Snapshot | None:
    """The saved snapshot, or None when it is not one of ours."""
    if schema != SCHEMA:
        return None
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
