"""Judge the activity of an agent in a terminal from its screen and its output, and record each change.

The screen is read after output, and again after a silence that is long enough to mean something; while the
agent is silent nothing runs here. A judgement is recorded when it has held for a moment, because screens are
drawn in pieces.
"""

import asyncio
from collections.abc import Awaitable, Callable

from .. import clock
from ..domain.activity import ActivityEvidence, judge_activity, required_stability, seconds_to_next_check
from ..domain.conversation_state import Turn
from ..domain.screen_patterns import JudgedActivity, ScreenPatterns, read_screen
from ..domain.snapshot import Worker
from ..domain.states import Activity
from ..intervals import intervals
from ..log.recording import Recording
from .output_activity import OutputActivity
from .screen import ScreenView

ReadScreen = Callable[[], Awaitable[ScreenView]]
ReadState = Callable[[], tuple[Worker, Turn | None]]
RecordActivity = Callable[[JudgedActivity, Turn | None], Awaitable[None]]


class ActivityWatch:
    """Watches one run of an agent.

    `read_screen` returns its screen, also after the next run has begun. `read_state` returns the worker and
    its turn as they are stored; `record` stores a judgement of them.
    """

    def __init__(
        self,
        read_screen: ReadScreen,
        recording: Recording,
        signs: ScreenPatterns,
        read_state: ReadState,
        record: RecordActivity,
    ) -> None:
        self._read_screen = read_screen
        self._recording = recording
        self._signs = signs
        self._read_state = read_state
        self._record = record
        self._woken = asyncio.Event()
        self._output = OutputActivity(recording)
        self._shown: JudgedActivity | None = None
        # What the agent reported, and what its screen showed then.
        self._report: tuple[JudgedActivity, JudgedActivity | None] | None = None
        self._candidate: tuple[JudgedActivity, float] | None = None  # a judgement, and since when it holds
        self._prompt_id: str | None = None  # of the turn at the last check
        self._submitted: tuple[str, int] | None = None  # the last prompt, and where the recording ended then

    @property
    def may_follow_input(self) -> bool:
        """Whether the work that the agent begins now may be what a user typed into its terminal."""
        return self._output.may_follow_input

    def note_input(self, keys: bytes) -> None:
        """Note that a user typed, and wake the watch.

        A user who types has seen the agent's call for attention, so the call ends even if the program writes
        nothing.
        """
        self._output.note_input(keys)
        self._woken.set()

    def note_prompt(self, offset: int) -> None:
        """Note that the prompt of the turn was submitted when the recording ended at this offset."""
        turn = self._read_state()[1]
        if turn is not None:
            self._submitted = turn.prompt_id, offset
            self._output.note_prompt()
        self._woken.set()

    def note_report(self, verdict: JudgedActivity) -> None:
        """Note the activity that the agent reports itself. It counts until the screen shows another one."""
        self._report = verdict, self._shown
        self._woken.set()

    async def run(self) -> None:
        """Judge the activity after output and at set times, at most once per interval, until cancelled."""
        self._recording.watch(self._woken.set)
        try:
            while True:
                self._woken.clear()
                next_check = await self._check()
                await asyncio.sleep(intervals().screen_check)
                await self._wait(next_check)
        finally:
            self._recording.unwatch(self._woken.set)

    async def _wait(self, seconds: float | None) -> None:
        """Wait for output, or for the rest of these seconds."""
        rest = None if seconds is None else max(0.0, seconds - intervals().screen_check)
        try:
            async with asyncio.timeout(rest):
                await self._woken.wait()
        except TimeoutError:
            return

    async def _check(self) -> float | None:
        """Judge the activity, and record it once it has held long enough.

        Return the seconds until the next check; None to wait for output.
        """
        self._output.update()
        screen = await self._read_screen()
        worker, turn = self._read_state()
        self._note_turn(turn)
        self._note_screen(read_screen(self._signs, screen.text))
        evidence = self._evidence(worker)
        verdict = judge_activity(evidence, self._signs)
        if verdict is not None and self._is_early(verdict, turn):
            verdict = None
        if verdict is None or verdict.activity is worker.activity:
            self._candidate = None
            if verdict is not None and self.may_follow_input:
                await self._record(verdict, turn)  # never idle before, perhaps: its conversation begins now
            return seconds_to_next_check(evidence, self._signs, in_turn=turn is not None)
        left = self._seconds_to_hold(verdict, turn)
        if left <= 0:
            await self._record(verdict, turn)
        return max(left, intervals().screen_check)

    def _note_turn(self, turn: Turn | None) -> None:
        """When a new turn has begun, forget the agent's report and its call for attention from before."""
        before, self._prompt_id = self._prompt_id, turn.prompt_id if turn else None
        if self._prompt_id not in (None, before):
            self._report = self._candidate = self._output.call = None

    def _note_screen(self, shown: JudgedActivity | None) -> None:
        """Note what the screen shows; drop the agent's report if that is another activity than then."""
        if self._report is not None and _activity(shown) is not _activity(self._report[1]):
            self._report = None
        self._shown = shown

    def _evidence(self, worker: Worker) -> ActivityEvidence:
        """Return what is known about the activity now: screen, reports, output and typing."""
        return ActivityEvidence(
            current=worker.activity,
            screen=self._shown,
            reported=self._report[0] if self._report else None,
            notification=self._output.call,
            is_writing=self._output.is_writing,
            silent_seconds=self._output.silent_seconds,
            seconds_since_typing=self._output.seconds_since_typing,
        )

    def _is_early(self, verdict: JudgedActivity, turn: Turn | None) -> bool:
        """Return whether an agent only looks idle because it has not reacted to the submitted prompt yet."""
        if turn is None or verdict.activity is not Activity.IDLE or self._report is not None:
            return False
        if self._submitted is None or self._submitted[0] != turn.prompt_id:
            return True
        answered = self._recording.end > self._submitted[1]
        return not answered and self._output.silent_seconds < self._signs.silence

    def _seconds_to_hold(self, verdict: JudgedActivity, turn: Turn | None) -> float:
        """Return the seconds until the judgement has held long enough to be recorded."""
        now = clock.monotonic()
        if self._candidate is None or self._candidate[0].activity is not verdict.activity:
            self._candidate = verdict, now
        return self._candidate[1] + required_stability(verdict, self._signs, turn is not None) - now


def _activity(verdict: JudgedActivity | None) -> Activity | None:
    """Return the activity of a verdict, or None without a verdict."""
    return verdict.activity if verdict else None
