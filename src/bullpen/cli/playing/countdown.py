"""The wait for the next moment: it stops with a pause, and goes on where it was."""

from ... import clock


class PausableTimer:
    """Deadlines are added up: to be late once is not to be late for ever."""

    def __init__(self) -> None:
        self._at = clock.monotonic()
        self._left: float | None = None  # while paused

    @property
    def paused(self) -> bool:
        return self._left is not None

    @property
    def at(self) -> float | None:
        """When it ends; None while paused."""
        return None if self.paused else self._at

    def begin(self, seconds: float) -> None:
        """From now on, whatever was left."""
        self._at = clock.monotonic() + seconds
        if self._left is not None:
            self._left = seconds

    def add(self, seconds: float) -> None:
        """For the moment after the one that was due; while paused that one came before its time."""
        if self._left is not None:
            self._left = seconds
        else:
            self._at += seconds

    def pause_or_go_on(self) -> None:
        if self._left is None:
            self._left = max(0.0, self._at - clock.monotonic())
        else:
            self._at, self._left = clock.monotonic() + self._left, None

    def stretch(self, factor: float) -> None:
        """Another speed: what is left takes so many times as long."""
        if self._left is not None:
            self._left *= factor
        else:
            now = clock.monotonic()
            self._at = now + max(0.0, self._at - now) * factor
