"""What is heard of an agent in a terminal between two looks: whether it writes, calls, or is silent."""

from .. import clock
from ..keeper.spool import SpoolGone
from ..log.recording import Recording
from .call_scanner import CallScanner

LISTENED = 64 << 10  # bytes between two looks in which calls are looked for: the last ones
RATE_BYTES = 32  # less than this between two looks is a cursor that blinks
LATELY = 1.0  # seconds; what was written longer apart is not a stream
ORDERED = 10.0  # seconds in which an agent begins what it was told
_ENTER = b"\r"


class OutputActivity:
    """`call` is the last bell or notice since anybody typed, or since the program went on writing."""

    def __init__(self, recording: Recording) -> None:
        self.call: str | None = None
        self.writes = False
        self._recording = recording
        self._calls = CallScanner()
        self._end = recording.end
        self._heard_at = clock.monotonic()
        self._typed_at: float | None = None
        self._entered_at: float | None = None

    @property
    def quiet(self) -> float:
        """Seconds since it last wrote something, or was told something to answer."""
        return clock.monotonic() - self._heard_at

    @property
    def since_typed(self) -> float | None:
        """Seconds since anybody typed; None when nobody did."""
        return None if self._typed_at is None else clock.monotonic() - self._typed_at

    @property
    def was_ordered(self) -> bool:
        """Whether what it begins now may be what somebody has just typed."""
        return self._entered_at is not None and clock.monotonic() - self._entered_at <= ORDERED

    def typed(self, keys: bytes) -> None:
        self._typed_at = clock.monotonic()
        if _ENTER in keys:
            self._entered_at = self._typed_at
        self.call = None

    def spoken_to(self) -> None:
        """Its silence before that means nothing."""
        self._heard_at = clock.monotonic()

    def listen(self) -> None:
        """Takes in what was written since the last time."""
        end = self._recording.end
        grown = end - self._end
        self.writes = grown >= RATE_BYTES and self.quiet <= LATELY
        if not grown:
            return
        call = self._calls.find(self._new(end))
        if call or self.writes:
            self.call = call
        self._end, self._heard_at = end, clock.monotonic()

    def _new(self, end: int) -> bytes:
        try:
            return self._recording.read(max(self._end, end - LISTENED), LISTENED)
        except SpoolGone:
            return b""
