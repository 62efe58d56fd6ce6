"""Watches what an agent in a terminal shows, and tells its activity (R72).

It is looked at when it has written something, and once more when silence says something: while it is silent
nothing runs here. A judgement is told when it has stood for a moment, since a screen is drawn in pieces.
"""

import asyncio
from collections.abc import Awaitable, Callable

from .. import clock
from ..domain.activity import ActivityEvidence, judge_activity, required_stability, seconds_to_next_check
from ..domain.conversation_state import Turn
from ..domain.signs import JudgedActivity, ScreenPatterns, read_screen
from ..domain.snapshot import Worker
from ..domain.states import Activity
from ..log.recording import Recording
from .output_activity import OutputActivity
from .screen import ScreenView

PACE = 0.25  # seconds between two looks

See = Callable[[], Awaitable[ScreenView]]
State = Callable[[], tuple[Worker, Turn | None]]
Tell = Callable[[JudgedActivity, Turn | None], Awaitable[None]]


class ActivityWatch:
    """Of one run: `see` shows its screen, also when the next has begun. `state` is the worker with its turn,
    as they are stored; `tell` stores a judgement of them."""

    def __init__(
        self, see: See, recording: Recording, signs: ScreenPatterns, state: State, tell: Tell
    ) -> None:
        self._see = see
        self._recording = recording
        self._signs = signs
        self._state = state
        self._tell = tell
        self._news = asyncio.Event()
        self._hearing = OutputActivity(recording)
        self._shown: JudgedActivity | None = None
        self._claim: tuple[JudgedActivity, JudgedActivity | None] | None = None  # and what was shown then
        self._candidate: tuple[JudgedActivity, float] | None = None  # and since when
        self._prompt_id: str | None = None  # of the turn at the last look
        self._submitted: tuple[str, int] | None = None  # the last prompt, and where the recording ended then

    @property
    def was_ordered(self) -> bool:
        """Whether what the agent begins now was typed into its terminal."""
        return self._hearing.was_ordered

    def typed(self, keys: bytes) -> None:
        """Somebody typed: what called for a person has been heard, though the program may write nothing."""
        self._hearing.typed(keys)
        self._news.set()

    def submitted(self, offset: int) -> None:
        """The prompt of the turn was submitted when the recording ended here."""
        turn = self._state()[1]
        if turn is not None:
            self._submitted = turn.prompt_id, offset
            self._hearing.spoken_to()
        self._news.set()

    def claimed(self, verdict: JudgedActivity) -> None:
        """The agent says itself what it does: that counts until its screen shows something else."""
        self._claim = verdict, self._shown
        self._news.set()

    async def go_on(self) -> None:
        """For as long as the program runs."""
        self._recording.watch(self._news.set)
        try:
            while True:
                self._news.clear()
                again = await self._look()
                await asyncio.sleep(PACE)
                await self._wait(again)
        finally:
            self._recording.unwatch(self._news.set)

    async def _wait(self, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(None if seconds is None else max(0.0, seconds - PACE)):
                await self._news.wait()
        except TimeoutError:
            return

    async def _look(self) -> float | None:
        """Judges, and tells what has stood long enough; seconds until it has to be looked at again."""
        self._hearing.listen()
        seen = await self._see()
        worker, turn = self._state()
        self._enter(turn)
        self._show(read_screen(self._signs, seen.text))
        evidence = self._evidence(worker)
        verdict = judge_activity(evidence, self._signs)
        if verdict is not None and self._is_early(verdict, turn):
            verdict = None
        if verdict is None or verdict.activity is worker.activity:
            self._candidate = None
            if verdict is not None and self.was_ordered:
                await self._tell(verdict, turn)  # it may never have been idle: its conversation begins now
            return seconds_to_next_check(evidence, self._signs, in_turn=turn is not None)
        left = self._stands_in(verdict, turn)
        if left <= 0:
            await self._tell(verdict, turn)
        return max(left, PACE)

    def _enter(self, turn: Turn | None) -> None:
        """A turn that begins ends what was known of the one before."""
        before, self._prompt_id = self._prompt_id, turn.prompt_id if turn else None
        if self._prompt_id not in (None, before):
            self._claim = self._candidate = self._hearing.call = None

    def _show(self, shown: JudgedActivity | None) -> None:
        if self._claim is not None and _activity(shown) is not _activity(self._claim[1]):
            self._claim = None
        self._shown = shown

    def _evidence(self, worker: Worker) -> ActivityEvidence:
        return ActivityEvidence(
            current=worker.activity,
            screen=self._shown,
            reported=self._claim[0] if self._claim else None,
            notification=self._hearing.call,
            is_writing=self._hearing.writes,
            silent_seconds=self._hearing.quiet,
            seconds_since_typing=self._hearing.since_typed,
        )

    def _is_early(self, verdict: JudgedActivity, turn: Turn | None) -> bool:
        """Until it has written something to what was submitted, an agent only looks idle."""
        if turn is None or verdict.activity is not Activity.IDLE or self._claim is not None:
            return False
        if self._submitted is None or self._submitted[0] != turn.prompt_id:
            return True
        answered = self._recording.end > self._submitted[1]
        return not answered and self._hearing.quiet < self._signs.silence

    def _stands_in(self, verdict: JudgedActivity, turn: Turn | None) -> float:
        """Seconds until the judgement has stood long enough."""
        now = clock.monotonic()
        if self._candidate is None or self._candidate[0].activity is not verdict.activity:
            self._candidate = verdict, now
        return self._candidate[1] + required_stability(verdict, self._signs, turn is not None) - now


def _activity(verdict: JudgedActivity | None) -> Activity | None:
    return verdict.activity if verdict else None
