"""Delays between tries."""

import pytest

from bullpen.client.backoff import FIRST_SECONDS, MAX_SECONDS, Backoff


@pytest.fixture
def quick_retries() -> None:
    """Instead of the one of this folder: delays are as long as they really are."""


def test_the_first_retry_is_quick_then_delays_double_up_to_thirty_seconds() -> None:
    backoff = Backoff(jitter=lambda: 1.0)
    assert [backoff.next_delay() for _ in range(8)] == [FIRST_SECONDS, 1, 2, 4, 8, 16, 30, 30]


def test_chance_only_shortens_a_delay() -> None:
    backoff = Backoff(jitter=lambda: 0.0)
    delays = [backoff.next_delay() for _ in range(8)]
    assert delays[1:4] == [0.75, 1.5, 3.0]
    assert max(delays) < MAX_SECONDS


def test_after_success_the_next_failure_is_a_first_one() -> None:
    backoff = Backoff(jitter=lambda: 1.0)
    for _ in range(5):
        backoff.next_delay()
    backoff.reset()
    assert backoff.next_delay() == FIRST_SECONDS
