"""Decide what an agent in a terminal is doing (working, idle, asking) from all evidence of one moment."""

from msgspec import Struct

from ..intervals import intervals
from .screen_patterns import JudgedActivity, ScreenPatterns
from .states import Activity

BELL_SILENCE_SECONDS = 0.5  # a bell asks for a user after this silence; sooner it belongs to the output
ECHO_SECONDS = 1.0  # output this soon after typing may be an echo of the typed text


class ActivityEvidence(Struct, frozen=True, kw_only=True):
    """What is known about an agent in a terminal at one moment."""

    current: Activity  # the activity of the last event
    screen: JudgedActivity | None = None  # according to the patterns on the screen
    reported: JudgedActivity | None = None  # by the agent itself, until its screen shows something newer
    notification: str | None = None  # a bell or a notification sequence since the last typed input
    is_writing: bool = False
    silent_seconds: float = 0.0
    seconds_since_typing: float | None = None  # None: nothing was typed


def judge_activity(evidence: ActivityEvidence, signs: ScreenPatterns) -> JudgedActivity | None:
    """Return the most reliable activity that the evidence shows, or None if nothing indicates a change."""
    if evidence.reported is not None:
        return evidence.reported
    if evidence.screen is not None:
        return evidence.screen
    if evidence.notification is not None and evidence.silent_seconds >= BELL_SILENCE_SECONDS:
        return JudgedActivity(Activity.ASKING, evidence.notification)
    if evidence.is_writing and (
        evidence.seconds_since_typing is None or evidence.seconds_since_typing > ECHO_SECONDS
    ):
        return JudgedActivity(Activity.ACTIVE, "it writes")
    if evidence.silent_seconds >= signs.silence and _may_fall_silent(evidence):
        return JudgedActivity(Activity.IDLE, f"silent for {signs.silence:g} s")
    return None


def seconds_to_next_check(evidence: ActivityEvidence, signs: ScreenPatterns, in_turn: bool) -> float | None:
    """Return the seconds until silence alone changes the judgement, or None if silence never does."""
    looks_idle = evidence.screen is not None and evidence.screen.activity is Activity.IDLE
    if in_turn and looks_idle and evidence.current is not Activity.IDLE:
        return max(0.0, signs.silence - evidence.silent_seconds)
    if evidence.reported is not None or evidence.screen is not None:
        return None
    if evidence.notification is not None and evidence.silent_seconds < BELL_SILENCE_SECONDS:
        return BELL_SILENCE_SECONDS - evidence.silent_seconds
    if evidence.current is not Activity.IDLE and _may_fall_silent(evidence):
        return max(0.0, signs.silence - evidence.silent_seconds)
    return None


def required_stability(verdict: JudgedActivity, signs: ScreenPatterns, in_turn: bool) -> float:
    """Return for how many seconds a judgement must stay the same before it becomes an event."""
    return signs.settle if in_turn and verdict.activity is Activity.IDLE else intervals().screen_settle


def _may_fall_silent(evidence: ActivityEvidence) -> bool:
    """Return whether silence means idle. An agent that asks keeps asking until a person types."""
    return evidence.current is not Activity.ASKING or (
        evidence.seconds_since_typing is not None
        and evidence.seconds_since_typing <= evidence.silent_seconds + ECHO_SECONDS
    )
