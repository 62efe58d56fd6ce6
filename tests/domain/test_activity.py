"""The activity of a terminal agent, computed from its screen, its output and its own reports."""

import pytest

from bullpen.domain.activity import (
    ECHO_SECONDS,
    ActivityEvidence,
    judge_activity,
    required_stability,
    seconds_to_next_check,
)
from bullpen.domain.errors import Invalid
from bullpen.domain.screen_patterns import (
    JudgedActivity,
    ScreenPatterns,
    TypingKeys,
    check_keys,
    check_signs,
    read_screen,
)
from bullpen.domain.states import Activity

SIGNS = ScreenPatterns(asking=(r"Allow\?",), busy=("esc to interrupt",), idle=("^> ",), silence=10, settle=2)
WORKING = JudgedActivity(Activity.ACTIVE, "its screen shows “esc to interrupt”")


def activity(verdict: JudgedActivity | None) -> Activity | None:
    return verdict.activity if verdict else None


@pytest.mark.parametrize(
    ("screen", "expected"),
    [
        ("Allow?\nesc to interrupt\n> ", Activity.ASKING),
        ("esc to interrupt\n\n> ", Activity.ACTIVE),
        ("some text\n> say something\n   \n", Activity.IDLE),
        ("some text > here", None),
        ("", None),
    ],
)
def test_the_asking_pattern_takes_precedence_over_busy_and_busy_over_idle(
    screen: str, expected: Activity | None
) -> None:
    assert activity(read_screen(SIGNS, screen)) is expected


def test_only_the_end_of_the_screen_counts_and_blank_lines_do_not() -> None:
    signs = ScreenPatterns(asking=("Allow",), lines=2)
    assert read_screen(signs, "Allow\n\none\n\n\ntwo\n\n") is None
    assert activity(read_screen(signs, "one\nAllow\n\n\ntwo\n\n")) is Activity.ASKING


def test_the_reason_is_one_short_line_of_printable_text() -> None:
    verdict = read_screen(ScreenPatterns(busy=(r"(?s)work.*",)), "working\x1b\n" + "x" * 500)
    assert verdict == JudgedActivity(Activity.ACTIVE, f"its screen shows “working {'x' * 52}”")


def test_the_report_of_the_agent_takes_precedence_over_its_screen() -> None:
    report = JudgedActivity(Activity.ASKING, "it says so")
    assert (
        judge_activity(ActivityEvidence(current=Activity.ACTIVE, screen=WORKING, reported=report), SIGNS)
        is report
    )


def test_a_bell_means_asking_only_if_the_screen_matches_no_pattern_and_after_a_delay() -> None:
    with_bell = ActivityEvidence(current=Activity.ACTIVE, notification="it rang the bell", silent_seconds=1)
    assert judge_activity(with_bell, SIGNS) == JudgedActivity(Activity.ASKING, "it rang the bell")
    busy = ActivityEvidence(
        current=Activity.ACTIVE, notification="it rang the bell", silent_seconds=1, screen=WORKING
    )
    assert judge_activity(busy, SIGNS) is WORKING
    at_once = ActivityEvidence(current=Activity.ACTIVE, notification="it rang the bell", silent_seconds=0.1)
    assert judge_activity(at_once, SIGNS) is None
    assert seconds_to_next_check(at_once, SIGNS, in_turn=False) == pytest.approx(0.4)


def test_an_echo_is_not_work() -> None:
    assert (
        judge_activity(
            ActivityEvidence(current=Activity.IDLE, is_writing=True, seconds_since_typing=ECHO_SECONDS / 2),
            SIGNS,
        )
        is None
    )
    assert (
        activity(
            judge_activity(
                ActivityEvidence(
                    current=Activity.IDLE, is_writing=True, seconds_since_typing=ECHO_SECONDS * 2
                ),
                SIGNS,
            )
        )
        is Activity.ACTIVE
    )
    assert (
        activity(judge_activity(ActivityEvidence(current=Activity.IDLE, is_writing=True), SIGNS))
        is Activity.ACTIVE
    )


def test_silence_ends_work_but_no_question() -> None:
    assert (
        activity(judge_activity(ActivityEvidence(current=Activity.ACTIVE, silent_seconds=10), SIGNS))
        is Activity.IDLE
    )
    assert judge_activity(ActivityEvidence(current=Activity.ASKING, silent_seconds=100), SIGNS) is None
    assert (
        activity(
            judge_activity(
                ActivityEvidence(current=Activity.ASKING, silent_seconds=10, seconds_since_typing=10), SIGNS
            )
        )
        is Activity.IDLE
    )


@pytest.mark.parametrize(
    "evidence",
    [
        ActivityEvidence(current=Activity.IDLE, silent_seconds=1),
        ActivityEvidence(current=Activity.IDLE, screen=JudgedActivity(Activity.IDLE, "a prompt")),
        ActivityEvidence(current=Activity.ACTIVE, screen=WORKING),
        ActivityEvidence(current=Activity.ASKING, silent_seconds=1),
    ],
)
def test_no_further_check_is_scheduled_if_silence_cannot_change_the_activity(
    evidence: ActivityEvidence,
) -> None:
    assert seconds_to_next_check(evidence, SIGNS, in_turn=False) is None


def test_a_turn_ends_only_after_the_screen_was_idle_for_the_settle_time() -> None:
    idle = JudgedActivity(Activity.IDLE, "a prompt")
    assert required_stability(idle, SIGNS, in_turn=True) == 2
    assert required_stability(idle, SIGNS, in_turn=False) < 1
    assert required_stability(WORKING, SIGNS, in_turn=True) < 1
    looks_idle = ActivityEvidence(current=Activity.ACTIVE, screen=idle, silent_seconds=4)
    assert seconds_to_next_check(looks_idle, SIGNS, in_turn=True) == 6


@pytest.mark.parametrize(
    ("signs", "complaint"),
    [
        (ScreenPatterns(asking=("(",)), "signs.asking has '\\(', which is not a regular expression"),
        (ScreenPatterns(busy=("x*",)), "found on every screen"),
        (ScreenPatterns(lines=0), "signs.lines"),
        (ScreenPatterns(silence=-1), "signs.silence"),
    ],
)
def test_invalid_screen_patterns_are_refused(signs: ScreenPatterns, complaint: str) -> None:
    with pytest.raises(Invalid, match=complaint):
        check_signs(signs, "mine.toml")


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        (TypingKeys(submit=""), "keys.submit"),
        (TypingKeys(image="x"), "keys.image"),
        (TypingKeys(pause=60), "keys.pause"),
        (TypingKeys(echo=-1), "keys.echo"),
    ],
)
def test_invalid_typing_keys_are_refused(keys: TypingKeys, complaint: str) -> None:
    with pytest.raises(Invalid, match=complaint):
        check_keys(keys, "mine.toml")


def test_the_documented_idle_pattern_matches_an_empty_prompt_without_its_trailing_blank() -> None:
    for prompt in (">", "> ", "> half a line"):
        verdict = read_screen(SIGNS, f"hello\n{prompt}\n\n")
        assert verdict is not None and verdict.activity is Activity.IDLE
    exact = ScreenPatterns(idle=("^>$",))
    assert read_screen(exact, "hello\n> \n") is not None
    assert read_screen(SIGNS, "hello\n>> \n") is None
