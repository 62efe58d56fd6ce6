"""Which run of a session is ended for what it uses, and the reason that its worker records."""

import pytest

from bullpen.domain.limits import (
    NO_LIMITS,
    Excess,
    ResourceLimits,
    RunUsage,
    describe_excess,
    find_offenders,
    format_size,
)

LIMITS = ResourceLimits(memory=1000, processes=100, disk=1 << 30)


@pytest.mark.parametrize(
    ("usages", "found"),
    [
        ({}, {}),
        ({"a": RunUsage(memory=1000, processes=100)}, {}),
        ({"a": RunUsage(memory=1001)}, {"a": "memory"}),
        ({"a": RunUsage(processes=101)}, {"a": "processes"}),
        ({"a": RunUsage(memory=600), "b": RunUsage(memory=500)}, {"a": "memory"}),
        ({"a": RunUsage(processes=40), "b": RunUsage(processes=70)}, {"b": "processes"}),
        ({"a": RunUsage(processes=95, is_refused=True)}, {"a": "processes"}),
        ({"a": RunUsage(processes=95), "b": RunUsage(processes=4, is_refused=True)}, {"a": "processes"}),
        ({"a": RunUsage(processes=50, is_refused=True)}, {}),
        ({"a": RunUsage(is_killed=True, is_full=True), "b": RunUsage(is_full=True)}, {"a": "memory"}),
        ({"a": RunUsage(is_killed=True)}, {"a": "machine"}),
        ({"a": RunUsage(is_killed=True, is_full=True), "b": RunUsage(processes=500)}, {"a": "memory"}),
        ({"a": RunUsage(memory=1001, processes=101)}, {"a": "processes"}),
    ],
)
def test_the_largest_run_of_a_session_that_is_over_a_limit_is_ended(
    usages: dict[str, RunUsage], found: dict[str, Excess]
) -> None:
    assert find_offenders(LIMITS, usages) == found


def test_without_limits_no_run_is_ended() -> None:
    assert find_offenders(NO_LIMITS, {"a": RunUsage(1 << 60, 1 << 20, is_refused=True)}) == {}


@pytest.mark.parametrize(
    ("excess", "reason"),
    [
        ("memory", "ended: the session used more than 1000 bytes of memory (sandbox_memory)"),
        ("processes", "ended: the session used more than 100 processes (sandbox_processes)"),
        ("disk", "ended: the session used more than 1 GiB of disk (sandbox_disk)"),
        ("machine", "ended: the machine ran out of memory"),
    ],
)
def test_a_reason_names_limit_value_and_setting(excess: Excess, reason: str) -> None:
    assert describe_excess(LIMITS, excess) == reason


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (12 << 30, "12 GiB"), (5 << 50, "5120 TiB")],
)
def test_a_size_has_the_largest_unit(size: int, text: str) -> None:
    assert format_size(size) == text
