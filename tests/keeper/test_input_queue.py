"""The input of a child over a real pipe and a real loop, one turn at a time."""

import errno
import os
import time
from collections.abc import Callable, Iterator

import pytest

from bullpen.keeper.input import MAX_QUEUED_BYTES, MAX_WRITERS, RETRY_SECONDS, InputGap, NumberedInput
from bullpen.keeper.loop import EventLoop

CAPACITY = 1 << 16  # bytes that fit into a pipe without a reader
DEADLINE = 60.0


class Child:
    """Both ends of a pipe: the input writes to one, and the child reads from the other when it wants to."""

    def __init__(self) -> None:
        self.loop = EventLoop()
        self.end, self.fd = os.pipe()
        for fd in (self.end, self.fd):
            os.set_blocking(fd, False)
        self.input = NumberedInput(self.fd, self.loop)
        self._number = 0

    def take(self, data: bytes) -> None:
        self._number += 1
        assert self.input.accept("a", self._number, data) == self._number

    def refusal(self, data: bytes) -> tuple[int | None, str | None]:
        """Why the next write is refused; its number can then be used again."""
        with pytest.raises(OSError, match=r"is closed|wait for it") as refused:
            self.input.accept("a", self._number + 1, data)
        assert self.input.numbers["a"] == self._number
        return refused.value.errno, refused.value.strerror

    def turn(self) -> None:
        self.loop.call_later(0, self.loop.stop)
        self.loop.run()

    def read(self) -> bytes:
        try:
            return os.read(self.end, 1 << 20)
        except BlockingIOError:
            return b""

    def read_all(self, size: int) -> bytes:
        data = b""
        until = time.monotonic() + DEADLINE
        while len(data) < size and time.monotonic() < until:
            data += self.read()
            self.turn()
        return data + self.read()

    @property
    def open(self) -> bool:
        try:
            return bool(os.fstat(self.fd))
        except OSError:
            return False

    def close(self) -> None:
        self.input.close()
        os.close(self.end)


@pytest.fixture
def child() -> Iterator[Child]:
    child = Child()
    yield child
    child.close()


def pattern(size: int, seed: int = 0) -> bytes:
    return bytes((number * 7 + seed) % 251 for number in range(size))


def test_what_fits_is_written_at_once_and_waits_for_no_room(child: Child) -> None:
    child.take(b"one ")
    child.take(b"")
    child.take(b"two")
    assert not child.loop.watches(child.fd)
    assert child.read() == b"one two"


def test_what_does_not_fit_is_written_in_order_when_there_is_room(child: Child) -> None:
    first, second, third = pattern(CAPACITY * 3), pattern(CAPACITY, 1), b"end"
    for piece in (first, second, b"", third):
        child.take(piece)
    assert child.loop.watches(child.fd)
    assert child.read_all(CAPACITY * 4 + 3) == first + second + third
    assert not child.loop.watches(child.fd)
    child.take(b"more")
    assert child.read() == b"more"


def test_a_number_is_taken_once_and_none_is_skipped(child: Child) -> None:
    take = child.input.accept
    assert take("a", 1, b"one ") == 1
    assert take("b", 1, b"other ") == 1
    assert take("a", 1, b"again") == 1
    assert take("a", 2, b"two ") == 2
    assert take("a", 1, b"old") == 2
    for writer, number, last in (("a", 4, 2), ("b", 3, 1), ("c", 2, 0)):
        with pytest.raises(InputGap) as gap:
            take(writer, number, b"lost")
        assert (gap.value.last, gap.value.errno) == (last, errno.ERANGE)
        assert gap.value.strerror == f"the last accepted number is {last}"
    assert child.input.numbers == {"a": 2, "b": 1}
    assert child.read() == b"one other two "


def test_the_writer_longest_silent_is_forgotten(child: Child) -> None:
    for number in range(MAX_WRITERS):
        child.input.accept(f"w{number}", 1, b"")
    assert len(child.input.numbers) == MAX_WRITERS
    child.input.accept("w0", 1, b"")  # a repeat counts as a word
    child.input.accept("new", 1, b"")
    assert len(child.input.numbers) == MAX_WRITERS
    assert "w1" not in child.input.numbers
    assert list(child.input.numbers)[-2:] == ["w0", "new"]


def test_a_child_that_does_not_read_is_sent_no_more_until_it_does(child: Child) -> None:
    child.take(bytes(CAPACITY + MAX_QUEUED_BYTES))  # as much as may wait
    child.take(b"x")
    assert child.refusal(b"y") == (errno.EAGAIN, f"{MAX_QUEUED_BYTES + 1} bytes wait for it already")
    assert len(child.read()) == CAPACITY
    child.turn()
    child.take(b"y")
    assert len(child.read_all(MAX_QUEUED_BYTES + 2)) == MAX_QUEUED_BYTES + 2
    child.take(b"z")
    assert child.read() == b"z"


def test_an_input_is_closed_when_all_that_waits_is_written(child: Child) -> None:
    data = pattern(CAPACITY * 2)
    child.take(data)
    child.input.close_when_written()
    assert child.open
    assert child.refusal(b"late") == (errno.EPIPE, "its input is closed")
    assert child.read_all(len(data)) == data
    assert not child.open
    assert os.read(child.end, 1) == b""


def test_an_input_for_which_nothing_waits_is_closed_at_once(child: Child) -> None:
    child.take(b"x")
    child.input.close_when_written()
    assert not child.open
    assert child.refusal(b"late") == (errno.EPIPE, "its input is closed")


def test_a_closed_input_forgets_what_waits_and_is_closed_once(child: Child) -> None:
    child.take(bytes(CAPACITY * 2))
    child.input.close()
    assert not child.open
    assert not child.loop.watches(child.fd)
    child.input.close()
    child.input.close_when_written()
    child.turn()
    assert len(child.read()) == CAPACITY


@pytest.mark.parametrize("size", [1, CAPACITY * 2])
def test_a_child_that_closed_its_input_gets_nothing_more(child: Child, size: int) -> None:
    child.take(bytes(size))
    os.close(child.end)
    child.end = os.open("/dev/null", os.O_RDONLY)
    if size == 1:
        child.take(b"nobody reads this")
    else:
        child.turn()
    assert not child.open
    assert not child.loop.watches(child.fd)
    assert child.refusal(b"late") == (errno.EPIPE, "its input is closed")


def run_until(loop: EventLoop, condition: Callable[[], object]) -> float:
    """Seconds until the condition holds."""
    begun = time.monotonic()
    loop.after_iteration = lambda: loop.stop() if condition() else None
    loop.call_later(DEADLINE, loop.stop)
    loop.run()
    loop.after_iteration = lambda: None
    assert condition()
    return time.monotonic() - begun


def test_a_refused_write_is_tried_again_later(child: Child) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    pipe = os.dup(child.fd)
    os.dup2(full, child.fd)  # refuses every byte, and cannot be watched
    child.take(b"one ")
    assert not child.loop.watches(child.fd)
    child.take(b"two")
    child.turn()
    os.dup2(pipe, child.fd)
    for fd in (full, pipe):
        os.close(fd)
    child.turn()
    assert child.read() == b""
    said = bytearray()

    def hears_all() -> bool:
        said.extend(child.read())
        return bytes(said) == b"one two"

    assert RETRY_SECONDS / 2 < run_until(child.loop, hears_all) < DEADLINE
    assert not child.loop.watches(child.fd)
    child.take(b"three")
    assert child.read() == b"three"


def test_a_loop_that_cannot_watch_is_asked_again_later(child: Child) -> None:
    data = pattern(CAPACITY * 2)
    child.take(data[:CAPACITY])
    pipe, full = os.dup(child.fd), os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, child.fd)
    child.take(data[CAPACITY:])
    said = bytearray()
    tries = 0

    def hears_all() -> bool:
        nonlocal tries
        tries += 1
        if tries == 3:  # two retries were refused
            os.dup2(pipe, child.fd)
        said.extend(child.read())
        return bytes(said) == data

    assert run_until(child.loop, hears_all) > RETRY_SECONDS
    for fd in (full, pipe):
        os.close(fd)
