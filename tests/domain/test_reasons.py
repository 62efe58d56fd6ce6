"""Every reason why a session, worker or turn ended has a text for users."""

import json
from collections.abc import Callable

import pytest

from bullpen.domain.reasons import (
    end_reason_text,
    refusal_text,
    session_end_text,
    stop_reason_text,
    worker_end_text,
)
from support.golden import GOLDEN

WORDS: dict[str, dict[str, str]] = json.loads((GOLDEN / "words" / "reasons.json").read_text())


@pytest.mark.parametrize(
    ("kind", "text_of"),
    [
        ("ended", end_reason_text),
        ("worker", worker_end_text),
        ("refused", lambda refusal: refusal_text(*refusal.split(" ", 2))),
        ("turn", stop_reason_text),
    ],
)
def test_the_texts_are_the_same_as_those_of_the_page(kind: str, text_of: Callable[[str], str]) -> None:
    assert {reason: text_of(reason) for reason in WORDS[kind]} == WORDS[kind]


@pytest.mark.parametrize("reason", ["user_request", "cancelled", "last_disconnect", "idle_timeout", "error"])
def test_every_reason_for_the_end_of_a_session_has_a_text(reason: str) -> None:
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


def test_a_missing_reason_is_called_unknown() -> None:
    assert end_reason_text(None) == "unknown"
