"""The directory of recordings: for each session its events as lines and its state as metadata."""

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
from ..wire.browser import iso_time, session_json
from ..wire.json import encode
from .event_file import append_events, last_seq

EVENTS, METADATA = "events.jsonl", "metadata.json"
METADATA_FORMAT = 1


class _RecordingState(Struct, rename="camel"):
    """The part of `metadata.json` that is read back."""

    last_seq: int


def metadata_of(snapshot: Snapshot) -> dict[str, Any]:
    """Return the content of `metadata.json`. `completed` is true once the session has ended."""
    completed = snapshot.status is not SessionStatus.ACTIVE
    return {
        "format": METADATA_FORMAT,
        "id": snapshot.id,
        "title": snapshot.title,
        "startedAt": iso_time(snapshot.created_at),
        "completed": completed,
        "endedAt": iso_time(snapshot.updated_at) if completed else None,
        "lastSeq": snapshot.last_seq,
        "session": session_json(snapshot),
    }


class RecordingStore:
    """Reads and writes the recordings of all sessions; called from threads, one for each session.

    A removed session is not written again until `allow`.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._removed: set[str] = set()
        self._lock = Lock()

    def last_seq(self, session_id: str) -> int:
        """Return the number of the last event in the recording of a session, or 0."""
        return last_seq(self.directory / session_id / EVENTS)

    def metadata_seq(self, session_id: str) -> int:
        """Return up to which event the metadata of a recording goes, or 0 if there is none."""
        try:
            state = msgspec.json.decode(
                (self.directory / session_id / METADATA).read_bytes(), type=_RecordingState
            )
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return 0
        return state.last_seq

    def begin(self, snapshot: Snapshot) -> None:
        """Write the metadata of a recording that has no events yet, so that it has both files afterwards."""
        self._write_metadata(snapshot, metadata_of(snapshot) | {"lastSeq": 0})

    def append(self, session_id: str, wires: Sequence[bytes]) -> None:
        """Append events in JSON to the recording of a session."""
        with self._lock:
            if session_id not in self._removed:
                append_events(self._make_directory(session_id) / EVENTS, wires)

    def write_metadata(self, snapshot: Snapshot) -> None:
        """Replace the metadata of a recording. The events up to the snapshot must be in it already."""
        self._write_metadata(snapshot, metadata_of(snapshot))

    def _write_metadata(self, snapshot: Snapshot, metadata: dict[str, Any]) -> None:
        """Replace the metadata file, unless the session was removed."""
        with self._lock:
            if snapshot.id not in self._removed:
                text = encode(metadata).decode()
                write_private(self._make_directory(snapshot.id) / METADATA, text + "\n")

    def clear(self, session_id: str) -> None:
        """Delete the recording of a session, so that it is written again."""
        with self._lock:
            for name in (EVENTS, METADATA):
                (self.directory / session_id / name).unlink(missing_ok=True)

    def remove(self, session_id: str) -> None:
        """Delete the recording of a session that is being purged, and ignore later writes."""
        with self._lock:
            self._removed.add(session_id)
            shutil.rmtree(self.directory / session_id, ignore_errors=True)

    def allow(self, session_id: str) -> None:
        """Allow recording again for a session that was purged and then imported."""
        with self._lock:
            self._removed.discard(session_id)

    def _make_directory(self, session_id: str) -> Path:
        """Return the directory of a session; create it if it is missing."""
        directory = self.directory / session_id
        os.makedirs(directory, mode=0o700, exist_ok=True)
        return directory
