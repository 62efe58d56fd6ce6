"""The directory of recordings: for each session its events as lines and what they add up to."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
from msgspec import Struct

from ..domain.snapshot import Snapshot
from ..domain.states import SessionStatus
from ..home import write_private
from ..wire.browser import iso, session_json
from ..wire.json import encode
from .event_file import append_events, last_seq

EVENTS, METADATA = "events.jsonl", "metadata.json"
FORMAT = 1


class _RecordingState(Struct, rename="camel"):
    last_seq: int


def metadata_of(snapshot: Snapshot) -> dict[str, Any]:
    """What `metadata.json` says of a session; `completed` once nothing more is to come (R46)."""
    completed = snapshot.status is not SessionStatus.ACTIVE
    return {
        "format": FORMAT,
        "id": snapshot.id,
        "title": snapshot.title,
        "startedAt": iso(snapshot.created_at),
        "completed": completed,
        "endedAt": iso(snapshot.updated_at) if completed else None,
        "lastSeq": snapshot.last_seq,
        "session": session_json(snapshot),
    }


class RecordingStore:
    """Called from threads, for one session at a time. What is forgotten stays so until it comes again."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._forgotten: set[str] = set()
        self._lock = Lock()

    def last_seq(self, session_id: str) -> int:
        return last_seq(self.directory / session_id / EVENTS)

    def described(self, session_id: str) -> int:
        """Up to which event the metadata tell; 0 when there are none that can be read."""
        try:
            told = msgspec.json.decode(
                (self.directory / session_id / METADATA).read_bytes(), type=_RecordingState
            )
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return 0
        return told.last_seq

    def append(self, session_id: str, wires: Sequence[bytes]) -> None:
        with self._lock:
            if session_id not in self._forgotten:
                append_events(self._place(session_id) / EVENTS, wires)

    def describe(self, snapshot: Snapshot) -> None:
        """Replaces the metadata; they never say more than the lines hold."""
        with self._lock:
            if snapshot.id not in self._forgotten:
                text = encode(metadata_of(snapshot)).decode()
                write_private(self._place(snapshot.id) / METADATA, text + "\n")

    def empty(self, session_id: str) -> None:
        """Begins anew: what is there is gone, and comes again."""
        with self._lock:
            for name in (METADATA, EVENTS):
                (self.directory / session_id / name).unlink(missing_ok=True)

    def forget(self, session_id: str) -> None:
        """Removes the recording of a session that is being purged."""
        with self._lock:
            self._forgotten.add(session_id)
            shutil.rmtree(self.directory / session_id, ignore_errors=True)

    def remember(self, session_id: str) -> None:
        """A session that was purged has come again, from elsewhere."""
        with self._lock:
            self._forgotten.discard(session_id)

    def _place(self, session_id: str) -> Path:
        place = self.directory / session_id
        os.makedirs(place, mode=0o700, exist_ok=True)
        return place
