"""Why something ended is told to a person in words, whatever the protocol or an agent calls it."""

import json
from collections.abc import Callable

import pytest

from bullpen.domain.reasons import end_reason_text, session_end_text, stop_reason_text, worker_end_text
from support.golden import GOLDEN

WORDS: dict[str, dict[str, str]] = json.loads((GOLDEN / "words" / "reasons.json").read_text())


@pytest.mark.parametrize(
    ("kind", "say"), [("ended", end_reason_text), ("worker", worker_end_text), ("turn", stop_reason_text)]
)
def test_the_words_are_those_of_the_page(kind: str, say: Callable[[str], str]) -> None:
    assert {reason: say(reason) for reason in WORDS[kind]} == WORDS[kind]


@pytest.mark.parametrize("reason", ["user_request", "cancelled", "last_disconnect", "idle_timeout", "error"])
def test_every_end_of_a_session_has_words(reason: str) -> None:
    assert end_reason_text(reason) not in (reason, reason.replace("_", " "))


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        ("completed", "user_request", "the session is completed (ended by a person)"),
        ("cancelled", "cancelled", "the session is cancelled (ended by a person)"),
        ("completed", "idle_timeout", "the session is completed (it was idle for too long)"),
        ("error", "error", "the session failed"),
    ],
)
def test_the_end_of_a_session_is_a_sentence(status: str, reason: str, words: str) -> None:
    assert session_end_text(status, reason) == words


def test_who_was_told_no_reason_says_so() -> None:
    assert end_reason_text(None) == "unknown"
