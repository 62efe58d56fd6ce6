"""Track the output of an agent in a terminal: it writes, it calls for attention, or it is silent."""

from .. import clock
from ..keeper.spool import SpoolGone
from ..log.recording import Recording
from .attention_scanner import AttentionScanner

MAX_SCAN_BYTES = 64 << 10  # the last bytes since the last update, which are searched for calls
MIN_WRITE_BYTES = 32  # less output since the last update may be a blinking cursor
MAX_WRITE_GAP = 1.0  # seconds between two outputs of an agent that is writing
INPUT_SECONDS = 10.0  # after a line of input: the agent begins its work because of it
_ENTER = b"\r"


class OutputActivity:
    """What the output of one run shows about the agent, as of the last `update`.

    `call` is the last bell or notification since a user typed, or since the program continued to write.
    """

    def __init__(self, recording: Recording) -> None:
        self.call: str | None = None
        self.is_writing = False
        self._recording = recording
        self._calls = AttentionScanner()
        self._end = recording.end
        self._output_at = clock.monotonic()
        self._typed_at: float | None = None
        self._entered_at: float | None = None

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last output or prompt."""
        return clock.monotonic() - self._output_at

    @property
    def seconds_since_typing(self) -> float | None:
        """Seconds since a user typed; None if no user has typed in this run."""
        return None if self._typed_at is None else clock.monotonic() - self._typed_at

    @property
    def may_follow_input(self) -> bool:
        """Whether the work that the agent begins now may be what a user has just typed."""
        return self._entered_at is not None and clock.monotonic() - self._entered_at <= INPUT_SECONDS

    def note_input(self, keys: bytes) -> None:
        """Note that a user typed, which also ends the program's call for attention."""
        self._typed_at = clock.monotonic()
        if _ENTER in keys:
            self._entered_at = self._typed_at
        self.call = None

    def note_prompt(self) -> None:
        """Note that a prompt was submitted: the time without output is counted from now."""
        self._output_at = clock.monotonic()

    def update(self) -> None:
        """Scan the output since the last update; set `is_writing`, and `call` if it calls or writes."""
        end = self._recording.end
        grown = end - self._end
        self.is_writing = grown >= MIN_WRITE_BYTES and self.silent_seconds <= MAX_WRITE_GAP
        if not grown:
            return
        call = self._calls.find_last(self._new_output(end))
        if call or self.is_writing:
            self.call = call
        self._end, self._output_at = end, clock.monotonic()

    def _new_output(self, end: int) -> bytes:
        """Return the end of the output since the last update."""
        try:
            return self._recording.read(max(self._end, end - MAX_SCAN_BYTES), MAX_SCAN_BYTES)
        except SpoolGone:
            return b""
