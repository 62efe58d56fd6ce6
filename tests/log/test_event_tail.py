"""The newest events in memory: consecutive events up to the head."""

import pytest

from bullpen.log.event_tail import MAX_BYTES, MAX_EVENTS, EventTail


def numbered(first: int, count: int) -> list[bytes]:
    return [b"%d" % seq for seq in range(first, first + count)]


def tail_of(count: int, head: int = 10) -> EventTail:
    tail = EventTail(head)
    tail.extend(numbered(head + 1, count))
    return tail


def test_any_part_of_the_tail_is_read_in_order() -> None:
    tail = tail_of(5)
    assert (tail.start, tail.head) == (10, 15)
    for after in range(10, 16):
        for until in range(after, 16):
            assert tail.between(after, until) == numbered(after + 1, until - after)


def test_the_oldest_events_are_dropped_beyond_the_limits_of_count_and_size() -> None:
    tail = tail_of(MAX_EVENTS, head=0)
    assert tail.start == 0
    tail.extend([b"x"])
    assert (tail.start, tail.head) == (1, MAX_EVENTS + 1)
    heavy = EventTail(0)
    heavy.extend([b"x" * (MAX_BYTES // 2)] * 2)
    assert heavy.start == 0
    heavy.extend([b"x"])
    assert (heavy.start, heavy.head) == (1, 3)
    heavy.extend([b"y" * (MAX_BYTES + 1)])
    assert (heavy.start, heavy.head) == (4, 4)
    heavy.extend([b"z"])
    assert heavy.between(4, 5) == [b"z"]


def test_a_read_returns_at_most_one_event_beyond_its_size_limit() -> None:
    tail = EventTail(0)
    tail.extend([b"12345"] * 4)
    for most, count in ((0, 1), (4, 1), (5, 2), (9, 2), (10, 3), (99, 4)):
        assert len(tail.between(0, 4, max_bytes=most)) == count
    assert tail_of(3).between(10, 13, max_bytes=0) == [b"11"]


@pytest.mark.parametrize("head", [15, 100])
def test_a_tail_that_skips_ahead_drops_all_events(head: int) -> None:
    tail = tail_of(5)
    tail.skip_to(head)
    assert (tail.start, tail.head, tail.between(head, head)) == (head, head, [])
    tail.extend([b"x" * MAX_BYTES])
    assert tail.start == head
