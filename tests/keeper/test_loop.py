"""The event loop: floods are read continuously, and are delayed while an answer is expected."""

import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen.keeper import loop
from bullpen.keeper.loop import READABLE, EventLoop
from bullpen.keeper.stream import READ_BYTES
from keeper.pipe_streams import pipe_stream

MAX_CALLBACKS = 300


class FloodedLoop:
    """A loop with an endless flood and a pipe that is always readable. It records its callbacks in order."""

    def __init__(self) -> None:
        self.loop = EventLoop()
        self.calls: list[str] = []
        self._pipes = [os.pipe() for _ in range(2)]
        for _, end in self._pipes:
            os.write(end, b"x")

    def close(self) -> None:
        for fd in (fd for pipe in self._pipes for fd in pipe):
            os.close(fd)

    def watch(self, *, flood: Callable[[], None], event: Callable[[], None]) -> None:
        (flooding, end), (readable, _) = self._pipes

        def refill() -> None:
            os.write(end, os.read(flooding, 1))
            flood()

        self.loop.watch(flooding, READABLE, self._recording("flood", refill))
        self.loop.watch(readable, READABLE, self._recording("event", event))
        self.loop.start_flood(flooding, lambda: None)
        self.loop.after_iteration = lambda: self.calls.append("iteration")

    def _recording(self, name: str, action: Callable[[], None]) -> Callable[[int], None]:
        def callback(_mask: int) -> None:
            self.calls.append(name)
            if len(self.calls) > MAX_CALLBACKS:
                self.loop.stop()
            action()

        return callback


class RecordedPriority:
    """Records changes of the scheduling policy and does not change that of this process."""

    def __init__(self) -> None:
        self.is_batch = False
        self.changes: list[bool] = []

    def change(self, batch: bool) -> None:
        self.is_batch = batch
        self.changes.append(batch)


@pytest.fixture(autouse=True)
def priority(monkeypatch: pytest.MonkeyPatch) -> RecordedPriority:
    recorded = RecordedPriority()
    monkeypatch.setattr(loop, "SchedulingPriority", lambda: recorded)
    return recorded


@pytest.fixture
def flooded(priority: RecordedPriority) -> FloodedLoop:
    return FloodedLoop()


def test_the_loop_lowers_its_priority_for_a_flood_until_an_answer_is_expected(
    flooded: FloodedLoop, priority: RecordedPriority
) -> None:
    flooded.watch(flood=lambda: None, event=flooded.loop.expect_answer)
    flooded.loop.run()
    flooded.close()
    assert priority.changes[:2] == [True, False]


def test_events_are_answered_before_a_flood_is_read(flooded: FloodedLoop) -> None:
    flooded.watch(flood=lambda: None, event=lambda: None)
    flooded.loop.run()
    flooded.close()
    assert flooded.calls[:4] == ["event", "iteration", "flood", "iteration"]


@pytest.mark.parametrize(
    ("expects_answer", "events_between_reads"),
    [
        (lambda event: event == 1, 4),  # the loop expects one answer
        (lambda event: event % 7 == 1, 7),  # every seventh event extends the delay
        (lambda event: True, 20),  # the delay is limited
    ],
)
def test_a_flood_waits_for_an_answer_but_never_starves(
    flooded: FloodedLoop,
    monkeypatch: pytest.MonkeyPatch,
    expects_answer: Callable[[int], bool],
    events_between_reads: int,
) -> None:
    now = [0]  # counts events
    monkeypatch.setattr(loop, "monotonic", lambda: now[0])
    constants = {
        "_ANSWER_SECONDS": 3600,
        "_FLOOD_IDLE_SECONDS": 3600,
        "_FLOOD_INTERVAL": 4,
        "_MAX_FLOOD_DELAY": 20,
    }
    for name, value in constants.items():
        monkeypatch.setattr(loop, name, value)

    def next_event() -> None:
        now[0] += 1
        if expects_answer(now[0]):
            flooded.loop.expect_answer()

    flooded.watch(flood=lambda: None, event=next_event)
    flooded.loop.run()
    flooded.close()
    between = "".join(name[0] for name in flooded.calls if name != "iteration").split("f")
    assert {len(events) for events in between[1:-1]} == {events_between_reads}


def test_repeated_floods_leave_one_timer(flooded: FloodedLoop) -> None:
    flooded.watch(flood=lambda: None, event=lambda: None)
    (flooding, _), _ = flooded._pipes
    for _ in range(10):
        flooded.loop.end_flood(flooding)
        flooded.loop.start_flood(flooding, lambda: None)
    assert len(flooded.loop._timers) == 1
    flooded.close()


def test_the_loop_polls_while_it_expects_an_echo(monkeypatch: pytest.MonkeyPatch) -> None:
    now, iterations = [0.0], [0]
    monkeypatch.setattr(loop, "monotonic", lambda: now[0])
    event_loop = EventLoop()

    def count_iteration() -> None:
        now[0] += 0.0001
        iterations[0] += 1
        if iterations[0] == 2:
            event_loop.stop_spinning()
            event_loop.call_later(0, event_loop.stop)

    event_loop.after_iteration = count_iteration
    event_loop.expect_answer()
    event_loop.run()
    assert iterations[0] == 3  # it polled without an event until the answer was there


def test_a_cancelled_timer_does_not_wake_the_loop() -> None:
    event_loop, iterations = EventLoop(), [0]

    def count_iteration() -> None:
        iterations[0] += 1

    for delay in (0.01, 0.02, 0.03):
        event_loop.call_later(delay, lambda: pytest.fail("it was cancelled")).cancel()
    event_loop.call_later(0.05, event_loop.stop)
    event_loop.after_iteration = count_iteration
    event_loop.run()
    assert iterations == [1]


class CrowdedLoop:
    """A loop with a pipe that is always readable, and a pipe that it watches urgently."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(loop, "_CROWDED_INTERVAL", 3600.0)
        monkeypatch.setattr(loop, "_COALESCE_SECONDS", 3600.0)
        self.loop = EventLoop()
        self.reads = 0
        (self._busy, end), (self._urgent, self._wake) = os.pipe(), os.pipe()
        os.write(end, b"x")
        self._ends = [self._busy, end, self._urgent, self._wake]
        self.loop.watch(self._busy, READABLE, self._count_read)
        self.loop.watch(self._urgent, READABLE, lambda _mask: self.loop.stop())
        self.loop.watch_urgently(self._urgent)

    def wake(self) -> None:
        os.write(self._wake, b"x")

    def close(self) -> None:
        for fd in self._ends:
            os.close(fd)

    def _count_read(self, _mask: int) -> None:
        self.reads += 1
        if self.reads == MAX_CALLBACKS:
            self.loop.stop()


def test_a_crowded_loop_pauses_and_an_urgent_descriptor_wakes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = CrowdedLoop(monkeypatch)
    alarm = threading.Timer(0.05, crowd.wake)
    alarm.start()
    crowd.loop.run()
    alarm.join()
    crowd.close()
    assert crowd.reads < MAX_CALLBACKS


def test_a_pause_of_a_crowded_loop_ends_when_a_timer_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = CrowdedLoop(monkeypatch)
    crowd.loop.call_later(0.05, crowd.loop.stop)
    crowd.loop.run()
    crowd.close()
    assert crowd.reads < MAX_CALLBACKS


def test_a_crowded_loop_does_not_pause_while_an_answer_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_ANSWER_SECONDS", 3600.0)
    crowd = CrowdedLoop(monkeypatch)
    crowd.loop.expect_answer()
    crowd.loop.run()
    crowd.close()
    assert crowd.reads == MAX_CALLBACKS


def test_a_crowded_loop_does_not_pause_while_a_pipe_is_full(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(loop, "_CROWDED_INTERVAL", 3600.0)
    monkeypatch.setattr(loop, "_COALESCE_SECONDS", 3600.0)
    event_loop = EventLoop()
    event_loop.call_later(5, event_loop.stop)
    output_bytes = 4 * READ_BYTES
    stream, writing = pipe_stream(tmp_path / "full", event_loop, on_terminal=False)
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, output_bytes)
    os.write(writing, bytes(output_bytes))
    ends: list[int] = []

    def count_iteration() -> None:
        ends.append(stream.spool.end)
        if stream.spool.end == output_bytes:
            event_loop.stop()

    event_loop.after_iteration = count_iteration
    event_loop.run()
    stream.close()
    stream.spool.close()
    os.close(writing)
    assert ends == [READ_BYTES, 2 * READ_BYTES, 3 * READ_BYTES, output_bytes]
