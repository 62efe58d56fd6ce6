"""Compute when the next moment of a recording is due, also after a pause or a change of the speed."""

from ... import clock


class PausableTimer:
    """A deadline that can be paused. Delays are added to the deadline, so that lateness does not add up."""

    def __init__(self) -> None:
        self._deadline = clock.monotonic()
        self._remaining: float | None = None  # seconds left while paused

    @property
    def paused(self) -> bool:
        """Whether the deadline is paused."""
        return self._remaining is not None

    @property
    def deadline(self) -> float | None:
        """The monotonic time at which the wait ends; None while paused."""
        return None if self.paused else self._deadline

    def restart(self, seconds: float) -> None:
        """Wait for `seconds` from now, instead of the remaining time."""
        self._deadline = clock.monotonic() + seconds
        if self._remaining is not None:
            self._remaining = seconds

    def add(self, seconds: float) -> None:
        """Wait `seconds` longer than the current deadline; while paused, wait only `seconds`."""
        if self._remaining is not None:
            self._remaining = seconds
        else:
            self._deadline += seconds

    def toggle_pause(self) -> None:
        """Pause, or continue with the remaining time."""
        if self._remaining is None:
            self._remaining = max(0.0, self._deadline - clock.monotonic())
        else:
            self._deadline, self._remaining = clock.monotonic() + self._remaining, None

    def scale(self, factor: float) -> None:
        """Multiply the remaining time after a change of the speed."""
        if self._remaining is not None:
            self._remaining *= factor
        else:
            now = clock.monotonic()
            self._deadline = now + max(0.0, self._deadline - now) * factor
