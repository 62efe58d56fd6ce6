"""Why something ended is told to a person in words, whatever the protocol or an agent calls it."""

import pytest

from bullpen.domain.reasons import why_session_ended, why_turn_ended


@pytest.mark.parametrize("reason", ["user_request", "cancelled", "last_disconnect", "idle_timeout", "error"])
def test_every_end_of_a_session_has_words(reason: str) -> None:
    words = why_session_ended(reason)
    assert words not in (reason, reason.replace("_", " "))


def test_a_word_only_an_agent_knows_is_at_least_readable() -> None:
    assert why_turn_ended("max_tokens") == "it has used all its tokens"
    assert why_turn_ended("out_of_coffee") == "out of coffee"
    assert why_session_ended(None) == "unknown"
