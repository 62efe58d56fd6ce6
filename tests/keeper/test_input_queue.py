"""The input of a child over a real pipe and a real event loop, one iteration at a time."""

import errno
import os
import time
from collections.abc import Callable, Iterator

import pytest

from bullpen.keeper.input import MAX_QUEUED_BYTES, MAX_WRITERS, RETRY_SECONDS, InputGap, NumberedInput
from bullpen.keeper.loop import EventLoop

CAPACITY = 1 << 16  # bytes that fit into a pipe without a reader
DEADLINE_SECONDS = 60.0


class PipedChild:
    """A pipe: the input writes to one end, and the test reads from the other end in place of a child."""

    def __init__(self) -> None:
        self.loop = EventLoop()
        self.end, self.fd = os.pipe()
        for fd in (self.end, self.fd):
            os.set_blocking(fd, False)
        self.input = NumberedInput(self.fd, self.loop)
        self._number = 0

    def write(self, data: bytes) -> None:
        self._number += 1
        assert self.input.accept("a", self._number, data) == self._number

    def refusal(self, data: bytes) -> tuple[int | None, str | None]:
        """Return the error of the next write, which must be refused. Its number can be used again."""
        with pytest.raises(OSError, match=r"is closed|wait for it") as refused:
            self.input.accept("a", self._number + 1, data)
        assert self.input.numbers["a"] == self._number
        return refused.value.errno, refused.value.strerror

    def run_once(self) -> None:
        self.loop.call_later(0, self.loop.stop)
        self.loop.run()

    def read(self) -> bytes:
        try:
            return os.read(self.end, 1 << 20)
        except BlockingIOError:
            return b""

    def read_all(self, size: int) -> bytes:
        data = b""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while len(data) < size and time.monotonic() < deadline:
            data += self.read()
            self.run_once()
        return data + self.read()

    @property
    def is_open(self) -> bool:
        try:
            return bool(os.fstat(self.fd))
        except OSError:
            return False

    def close(self) -> None:
        self.input.close()
        os.close(self.end)


@pytest.fixture
def child() -> Iterator[PipedChild]:
    child = PipedChild()
    yield child
    child.close()


def pattern(size: int, seed: int = 0) -> bytes:
    return bytes((number * 7 + seed) % 251 for number in range(size))


def test_data_that_fits_into_the_pipe_is_written_immediately(child: PipedChild) -> None:
    child.write(b"one ")
    child.write(b"")
    child.write(b"two")
    assert not child.loop.watches(child.fd)
    assert child.read() == b"one two"


def test_data_that_does_not_fit_is_written_in_order_when_there_is_space(child: PipedChild) -> None:
    first, second, third = pattern(CAPACITY * 3), pattern(CAPACITY, 1), b"end"
    for piece in (first, second, b"", third):
        child.write(piece)
    assert child.loop.watches(child.fd)
    assert child.read_all(CAPACITY * 4 + 3) == first + second + third
    assert not child.loop.watches(child.fd)
    child.write(b"more")
    assert child.read() == b"more"


def test_a_number_is_accepted_once_and_a_gap_is_refused(child: PipedChild) -> None:
    accept = child.input.accept
    assert accept("a", 1, b"one ") == 1
    assert accept("b", 1, b"other ") == 1
    assert accept("a", 1, b"again") == 1
    assert accept("a", 2, b"two ") == 2
    assert accept("a", 1, b"old") == 2
    for writer, number, last in (("a", 4, 2), ("b", 3, 1), ("c", 2, 0)):
        with pytest.raises(InputGap) as gap:
            accept(writer, number, b"lost")
        assert (gap.value.last, gap.value.errno) == (last, errno.ERANGE)
        assert gap.value.strerror == f"the last accepted number is {last}"
    assert child.input.numbers == {"a": 2, "b": 1}
    assert child.read() == b"one other two "


def test_the_least_recent_writer_is_forgotten(child: PipedChild) -> None:
    for number in range(MAX_WRITERS):
        child.input.accept(f"w{number}", 1, b"")
    assert len(child.input.numbers) == MAX_WRITERS
    child.input.accept("w0", 1, b"")  # a repetition makes the writer recent
    child.input.accept("new", 1, b"")
    assert len(child.input.numbers) == MAX_WRITERS
    assert "w1" not in child.input.numbers
    assert list(child.input.numbers)[-2:] == ["w0", "new"]


def test_writes_to_a_child_that_does_not_read_are_refused_beyond_the_limit(child: PipedChild) -> None:
    child.write(bytes(CAPACITY + MAX_QUEUED_BYTES))  # as much as can be queued
    child.write(b"x")
    assert child.refusal(b"y") == (errno.EAGAIN, f"{MAX_QUEUED_BYTES + 1} bytes wait for it already")
    assert len(child.read()) == CAPACITY
    child.run_once()
    child.write(b"y")
    assert len(child.read_all(MAX_QUEUED_BYTES + 2)) == MAX_QUEUED_BYTES + 2
    child.write(b"z")
    assert child.read() == b"z"


def test_an_input_is_closed_after_its_queue_is_written(child: PipedChild) -> None:
    data = pattern(CAPACITY * 2)
    child.write(data)
    child.input.close_when_written()
    assert child.is_open
    assert child.refusal(b"late") == (errno.EPIPE, "its input is closed")
    assert child.read_all(len(data)) == data
    assert not child.is_open
    assert os.read(child.end, 1) == b""


def test_an_input_with_an_empty_queue_is_closed_immediately(child: PipedChild) -> None:
    child.write(b"x")
    child.input.close_when_written()
    assert not child.is_open
    assert child.refusal(b"late") == (errno.EPIPE, "its input is closed")


def test_a_closed_input_drops_its_queue_and_can_be_closed_again(child: PipedChild) -> None:
    child.write(bytes(CAPACITY * 2))
    child.input.close()
    assert not child.is_open
    assert not child.loop.watches(child.fd)
    child.input.close()
    child.input.close_when_written()
    child.run_once()
    assert len(child.read()) == CAPACITY


@pytest.mark.parametrize("size", [1, CAPACITY * 2])
def test_the_input_is_closed_when_the_child_closes_its_end(child: PipedChild, size: int) -> None:
    child.write(bytes(size))
    os.close(child.end)
    child.end = os.open("/dev/null", os.O_RDONLY)
    if size == 1:
        child.write(b"not read")
    else:
        child.run_once()
    assert not child.is_open
    assert not child.loop.watches(child.fd)
    assert child.refusal(b"late") == (errno.EPIPE, "its input is closed")


def run_until(loop: EventLoop, condition: Callable[[], object]) -> float:
    """Run the loop until the condition is true, and return the seconds that it took."""
    start = time.monotonic()
    loop.after_iteration = lambda: loop.stop() if condition() else None
    loop.call_later(DEADLINE_SECONDS, loop.stop)
    loop.run()
    loop.after_iteration = lambda: None
    assert condition()
    return time.monotonic() - start


def test_a_write_that_failed_is_repeated_later(child: PipedChild) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    pipe = os.dup(child.fd)
    os.dup2(full, child.fd)  # refuses every byte, and cannot be watched
    child.write(b"one ")
    assert not child.loop.watches(child.fd)
    child.write(b"two")
    child.run_once()
    os.dup2(pipe, child.fd)
    for fd in (full, pipe):
        os.close(fd)
    child.run_once()
    assert child.read() == b""
    received = bytearray()

    def has_read_all() -> bool:
        received.extend(child.read())
        return bytes(received) == b"one two"

    assert RETRY_SECONDS / 2 < run_until(child.loop, has_read_all) < DEADLINE_SECONDS
    assert not child.loop.watches(child.fd)
    child.write(b"three")
    assert child.read() == b"three"


def test_watching_an_input_that_failed_is_repeated_later(child: PipedChild) -> None:
    data = pattern(CAPACITY * 2)
    child.write(data[:CAPACITY])
    pipe, full = os.dup(child.fd), os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, child.fd)
    child.write(data[CAPACITY:])
    received = bytearray()
    tries = 0

    def has_read_all() -> bool:
        nonlocal tries
        tries += 1
        if tries == 3:  # two retries were refused
            os.dup2(pipe, child.fd)
        received.extend(child.read())
        return bytes(received) == data

    assert run_until(child.loop, has_read_all) > RETRY_SECONDS
    for fd in (full, pipe):
        os.close(fd)
