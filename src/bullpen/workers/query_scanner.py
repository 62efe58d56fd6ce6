"""Scan terminal output for queries (DA, DSR, OSC colour) that the emulator must answer."""

import asyncio

from ..keeper.spool import SpoolGone
from ..log.recording import Recording
from .screen import LOOK_BACK_BYTES, may_contain_query

READ_BYTES = 2 << 20
FLOOD_BYTES = 4096  # more is no echo; if it has escape sequences, its scan takes a while


class QueryScanner:
    """Scans each byte of a recording once. It sets `woken` if the output may contain a query or is long."""

    def __init__(self, recording: Recording, offset: int, woken: asyncio.Event) -> None:
        self.offset = offset
        self._recording = recording
        self._woken = woken
        self._tail = b""

    def scan(self) -> None:
        """Scan new output without waking a task if it is short and has no query. Called at each growth."""
        if not (self._woken.is_set() or self._skip_harmless()):
            self._woken.set()

    def read_next(self, limit: int = READ_BYTES) -> bytes:
        """Return the next output that is not scanned; skip output that is no longer kept.

        An ESC at its end is left for the next read: alone it looks like a query, and floods of coloured text
        are often cut there.
        """
        try:
            piece = self._recording.read(self.offset, limit)
        except SpoolGone:
            start = self._recording.start
            if start <= self.offset:
                return b""  # all of it is gone
            self.offset, self._tail = start, b""
            return self.read_next(limit)
        return piece.removesuffix(b"\x1b")

    def _skip_harmless(self) -> bool:
        """Advance over new output that is short and has no query; return False otherwise."""
        try:
            piece = self.read_next()
        except OSError:  # no descriptor is free, for example: the woken task will get the error
            return False
        if (
            len(piece) >= READ_BYTES - 1
            or (len(piece) > FLOOD_BYTES and b"\x1b" in piece)
            or may_contain_query(self._tail, piece)
        ):
            return False
        self._remember(piece)
        return True

    def advance(self, piece: bytes) -> bool:
        """Mark a piece as scanned; return whether it may contain a query."""
        has_query = bool(piece) and may_contain_query(self._tail, piece)
        self._remember(piece)
        return has_query

    def _remember(self, piece: bytes) -> None:
        """Advance the offset, and keep the last bytes for queries that are cut."""
        self.offset += len(piece)
        self._tail = (self._tail + piece[-LOOK_BACK_BYTES:])[-LOOK_BACK_BYTES:]
