"""Saved snapshots: where a fold starts, so that opening a long session takes no longer than a short one."""

import msgspec

from ..domain.snapshot import Snapshot
from .append import Append
from .projections import Row

EVERY = 1000

# Raise it whenever the fold or the snapshot changes: what was saved before is then folded anew.
SCHEMA = 1

_decoder = msgspec.json.Decoder(Snapshot)


def snapshot_row(append: Append) -> Row | None:
    """The snapshot to save: one each time the numbers cross a multiple of EVERY."""
    last = append.snapshot.last_seq
    if last // EVERY == (last - len(append.entries)) // EVERY:
        return None
    body = msgspec.json.encode(append.snapshot)
    return {"session_id": append.snapshot.id, "seq": last, "schema": SCHEMA, "body": body}


def read_snapshot(schema: int, body: bytes) -> Snapshot | None:
    """The saved snapshot, or None when it is not one of ours."""
    if schema != SCHEMA:
        return None
    try:
        return _decoder.decode(body)
    except msgspec.DecodeError:
        return None
