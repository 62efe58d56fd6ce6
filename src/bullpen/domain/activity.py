"""What an agent in a terminal is doing, judged by all that is known of it at a moment (R72)."""

from msgspec import Struct

from .signs import JudgedActivity, ScreenPatterns
from .states import Activity

HOLD = 0.3  # seconds a judgement must stand before it is told: a screen is drawn in several pieces
CALM = 0.5  # seconds of silence after which a bell is a call and not a part of the noise
ECHO = 1.0  # seconds in which what a program writes may be an echo of what was typed


class ActivityEvidence(Struct, frozen=True, kw_only=True):
    """All that is known; times are seconds ago."""

    now: Activity  # as it was told last
    shown: JudgedActivity | None = None  # by the screen
    claim: JudgedActivity | None = None  # by the agent itself, while its screen shows nothing newer
    call: str | None = None  # a bell or a notice, since anybody typed
    writes: bool = False
    quiet: float = 0.0
    typed: float | None = None  # None: nobody did


def judge(evidence: ActivityEvidence, signs: ScreenPatterns) -> JudgedActivity | None:
    """The best judgement there is; None: nothing says that anything has changed."""
    if evidence.claim is not None:
        return evidence.claim
    if evidence.shown is not None:
        return evidence.shown
    if evidence.call is not None and evidence.quiet >= CALM:
        return JudgedActivity(Activity.ASKING, evidence.call)
    if evidence.writes and (evidence.typed is None or evidence.typed > ECHO):
        return JudgedActivity(Activity.ACTIVE, "it writes")
    if evidence.quiet >= signs.silence and _may_fall_silent(evidence):
        return JudgedActivity(Activity.IDLE, f"silent for {signs.silence:g} s")
    return None


def look_again(evidence: ActivityEvidence, signs: ScreenPatterns, in_turn: bool) -> float | None:
    """Seconds until silence alone changes the judgement; None when it never does."""
    looks_idle = evidence.shown is not None and evidence.shown.activity is Activity.IDLE
    if in_turn and looks_idle and evidence.now is not Activity.IDLE:
        return max(0.0, signs.silence - evidence.quiet)
    if evidence.claim is not None or evidence.shown is not None:
        return None
    if evidence.call is not None and evidence.quiet < CALM:
        return CALM - evidence.quiet
    if evidence.now is not Activity.IDLE and _may_fall_silent(evidence):
        return max(0.0, signs.silence - evidence.quiet)
    return None


def hold(verdict: JudgedActivity, signs: ScreenPatterns, in_turn: bool) -> float:
    """Seconds a judgement must stand before it is told."""
    return signs.settle if in_turn and verdict.activity is Activity.IDLE else HOLD


def _may_fall_silent(evidence: ActivityEvidence) -> bool:
    """A question stays one, however long nobody answers."""
    return evidence.now is not Activity.ASKING or (
        evidence.typed is not None and evidence.typed <= evidence.quiet + ECHO
    )
