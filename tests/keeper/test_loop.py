"""Whose turn it is: a flood is read all the time, and waits while somebody waits for an answer."""

import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen.keeper import loop
from bullpen.keeper.loop import READABLE, EventLoop
from bullpen.keeper.stream import READ_BYTES
from keeper.streams import pipe_stream

TURNS = 300


class Scene:
    """A loop with an endless flood and a pipe that can always be read, and what it did, in order."""

    def __init__(self) -> None:
        self.loop = EventLoop()
        self.done: list[str] = []
        self._pipes = [os.pipe() for _ in range(2)]
        for _, end in self._pipes:
            os.write(end, b"x")

    def close(self) -> None:
        for fd in (fd for pipe in self._pipes for fd in pipe):
            os.close(fd)

    def watch(self, *, flood: Callable[[], None], event: Callable[[], None]) -> None:
        (flooding, end), (asking, _) = self._pipes

        def flow() -> None:
            os.write(end, os.read(flooding, 1))
            flood()

        self.loop.watch(flooding, READABLE, self._noting("flood", flow))
        self.loop.watch(asking, READABLE, self._noting("event", event))
        self.loop.start_flood(flooding, lambda: None)
        self.loop.after_iteration = lambda: self.done.append("spoke")

    def _noting(self, word: str, then: Callable[[], None]) -> Callable[[int], None]:
        def callback(_mask: int) -> None:
            self.done.append(word)
            if len(self.done) > TURNS:
                self.loop.stop()
            then()

        return callback


class NotedPriority:
    """Notes the changes of the policy and leaves that of this process alone."""

    def __init__(self) -> None:
        self.is_batch = False
        self.changes: list[bool] = []

    def change(self, batch: bool) -> None:
        self.is_batch = batch
        self.changes.append(batch)


@pytest.fixture(autouse=True)
def priority(monkeypatch: pytest.MonkeyPatch) -> NotedPriority:
    noted = NotedPriority()
    monkeypatch.setattr(loop, "SchedulingPriority", lambda: noted)
    return noted


@pytest.fixture
def scene(priority: NotedPriority) -> Scene:
    return Scene()


def test_it_lets_others_run_while_it_reads_a_flood_and_nobody_waits(
    scene: Scene, priority: NotedPriority
) -> None:
    scene.watch(flood=lambda: None, event=scene.loop.expect_answer)
    scene.loop.run()
    scene.close()
    assert priority.changes[:2] == [True, False]


def test_what_was_heard_is_answered_before_a_flood_is_read(scene: Scene) -> None:
    scene.watch(flood=lambda: None, event=lambda: None)
    scene.loop.run()
    scene.close()
    assert scene.done[:4] == ["event", "spoke", "flood", "spoke"]


@pytest.mark.parametrize(
    ("asks", "events_between_reads"),
    [
        (lambda event: event == 1, 4),  # it waits for one answer
        (lambda event: event % 7 == 1, 7),  # a key puts it off
        (lambda event: True, 20),  # but not for ever
    ],
)
def test_a_flood_waits_for_an_answer_but_never_starves(
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    asks: Callable[[int], bool],
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
        if asks(now[0]):
            scene.loop.expect_answer()

    scene.watch(flood=lambda: None, event=next_event)
    scene.loop.run()
    scene.close()
    between = "".join(word[0] for word in scene.done if word != "spoke").split("f")
    assert {len(events) for events in between[1:-1]} == {events_between_reads}


def test_floods_that_come_and_go_leave_one_timer(scene: Scene) -> None:
    scene.watch(flood=lambda: None, event=lambda: None)
    (flooding, _), _ = scene._pipes
    for _ in range(10):
        scene.loop.end_flood(flooding)
        scene.loop.start_flood(flooding, lambda: None)
    assert len(scene.loop._timers) == 1
    scene.close()


def test_who_awaits_an_echo_stays_awake_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now, turns = [0.0], [0]
    monkeypatch.setattr(loop, "monotonic", lambda: now[0])
    this = EventLoop()

    def next_turn() -> None:
        now[0] += 0.0001
        turns[0] += 1
        if turns[0] == 2:
            this.stop_spinning()
            this.call_later(0, this.stop)

    this.after_iteration = next_turn
    this.expect_answer()
    this.run()
    assert turns[0] == 3  # it looked again without an event, until the answer was there


def test_a_timer_that_was_cancelled_wakes_nobody() -> None:
    this, turns = EventLoop(), [0]

    def next_turn() -> None:
        turns[0] += 1

    for delay in (0.01, 0.02, 0.03):
        this.call_later(delay, lambda: pytest.fail("it was cancelled")).cancel()
    this.call_later(0.05, this.stop)
    this.after_iteration = next_turn
    this.run()
    assert turns == [1]


class Crowd:
    """A loop with one pipe that always has something to say, and one that it heeds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(loop, "_CROWDED_INTERVAL", 3600.0)
        monkeypatch.setattr(loop, "_COALESCE_SECONDS", 3600.0)
        self.loop = EventLoop()
        self.heard = 0
        (self._talking, end), (self._heeded, self._wake) = os.pipe(), os.pipe()
        os.write(end, b"x")
        self._ends = [self._talking, end, self._heeded, self._wake]
        self.loop.watch(self._talking, READABLE, self._hear)
        self.loop.watch(self._heeded, READABLE, lambda _mask: self.loop.stop())
        self.loop.watch_urgently(self._heeded)

    def wake(self) -> None:
        os.write(self._wake, b"x")

    def close(self) -> None:
        for fd in self._ends:
            os.close(fd)

    def _hear(self, _mask: int) -> None:
        self.heard += 1
        if self.heard == TURNS:
            self.loop.stop()


def test_in_a_crowd_it_naps_and_wakes_for_whom_it_heeds(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = Crowd(monkeypatch)
    alarm = threading.Timer(0.05, crowd.wake)
    alarm.start()
    crowd.loop.run()
    alarm.join()
    crowd.close()
    assert crowd.heard < TURNS


def test_a_nap_ends_when_a_timer_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = Crowd(monkeypatch)
    crowd.loop.call_later(0.05, crowd.loop.stop)
    crowd.loop.run()
    crowd.close()
    assert crowd.heard < TURNS


def test_it_does_not_nap_while_somebody_waits_for_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_ANSWER_SECONDS", 3600.0)
    crowd = Crowd(monkeypatch)
    crowd.loop.expect_answer()
    crowd.loop.run()
    crowd.close()
    assert crowd.heard == TURNS


def test_it_does_not_nap_while_a_pipe_is_full(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(loop, "_CROWDED_INTERVAL", 3600.0)
    monkeypatch.setattr(loop, "_COALESCE_SECONDS", 3600.0)
    this = EventLoop()
    this.call_later(5, this.stop)
    said = 4 * READ_BYTES
    stream, writing = pipe_stream(tmp_path / "full", this, on_terminal=False)
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, said)
    os.write(writing, bytes(said))
    turns: list[int] = []

    def next_turn() -> None:
        turns.append(stream.spool.end)
        if stream.spool.end == said:
            this.stop()

    this.after_iteration = next_turn
    this.run()
    stream.close()
    stream.spool.close()
    os.close(writing)
    assert turns == [READ_BYTES, 2 * READ_BYTES, 3 * READ_BYTES, said]
