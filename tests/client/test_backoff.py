"""Delays between retries."""

import pytest

from bullpen.client.backoff import FIRST_SECONDS, MAX_SECONDS, Backoff


@pytest.fixture
def quick_retries() -> None:
    """Override the fixture of this directory, so that delays have their real lengths."""


def test_the_first_delay_is_short_and_later_ones_double_up_to_thirty_seconds() -> None:
    backoff = Backoff(jitter=lambda: 1.0)
    assert [backoff.next_delay() for _ in range(8)] == [FIRST_SECONDS, 1, 2, 4, 8, 16, 30, 30]


def test_jitter_only_shortens_a_delay() -> None:
    backoff = Backoff(jitter=lambda: 0.0)
    delays = [backoff.next_delay() for _ in range(8)]
    assert delays[1:4] == [0.75, 1.5, 3.0]
    assert max(delays) < MAX_SECONDS


def test_after_a_success_the_delays_start_again() -> None:
    backoff = Backoff(jitter=lambda: 1.0)
    for _ in range(5):
        backoff.next_delay()
    backoff.reset()
    assert backoff.next_delay() == FIRST_SECONDS
