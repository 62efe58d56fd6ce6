"""Delays between tries."""

import pytest

from bullpen.client.backoff import FIRST, LONGEST, Backoff


@pytest.fixture
def quick_retries() -> None:
    """Instead of the one of this folder: delays are as long as they really are."""


def test_the_first_retry_is_quick_then_delays_double_up_to_thirty_seconds() -> None:
    backoff = Backoff(chance=lambda: 1.0)
    assert [backoff.next() for _ in range(8)] == [FIRST, 1, 2, 4, 8, 16, 30, 30]


def test_chance_only_shortens_a_delay() -> None:
    backoff = Backoff(chance=lambda: 0.0)
    delays = [backoff.next() for _ in range(8)]
    assert delays[1:4] == [0.75, 1.5, 3.0]
    assert max(delays) < LONGEST


def test_after_success_the_next_failure_is_a_first_one() -> None:
    backoff = Backoff(chance=lambda: 1.0)
    for _ in range(5):
        backoff.next()
    backoff.reset()
    assert backoff.next() == FIRST
