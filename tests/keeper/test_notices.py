"""When the keeper sends notices of growth: immediately for a quiet stream, and else once per interval."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bullpen.keeper import loop as loop_module
from bullpen.keeper import notices as notices_module
from bullpen.keeper.frames import FrameDecoder, Tag, encode
from bullpen.keeper.loop import EventLoop
from bullpen.keeper.notices import GrowthNotices
from bullpen.keeper.spool import SpoolWriter
from bullpen.keeper.stream import MAX_NOTICE_BYTES, OutputStream


class WrittenStream:
    """An output stream to which the test writes."""

    def __init__(
        self, name: str, spool: SpoolWriter, loop: EventLoop, notices: GrowthNotices, on_terminal: bool
    ) -> None:
        self.name = name
        out, self._end = os.pipe()
        self.stream = OutputStream(
            (name, 1, "out"),
            out,
            spool,
            loop=loop,
            grown=notices.grown,
            on_end=lambda: None,
            window=None,
            on_terminal=on_terminal,
        )

    def write(self, data: bytes = b"x") -> None:
        os.write(self._end, data)
        assert self.stream.read()

    def close(self) -> None:
        os.close(self._end)
        self.stream.close()
        self.stream.spool.close()


@pytest.fixture
def notices(monkeypatch: pytest.MonkeyPatch, loop: EventLoop) -> GrowthNotices:
    """The interval of pipes and of many terminals never ends in the test; that of one terminal is 0."""
    monkeypatch.setattr(notices_module, "_PIPE_INTERVAL", 3600.0)
    monkeypatch.setattr(notices_module, "_SCREEN_INTERVAL", 3600.0)
    monkeypatch.setattr(notices_module, "_INTERVAL", 0.0)
    return GrowthNotices(loop)


@pytest.fixture
def loop() -> EventLoop:
    return EventLoop()


@pytest.fixture
def make_stream(tmp_path: Path, notices: GrowthNotices) -> Iterator[Callable[[str, bool], WrittenStream]]:
    with ExitStack() as stack:

        def make(name: str, on_terminal: bool) -> WrittenStream:
            directory = tmp_path / name
            directory.mkdir()
            fd = os.open(directory, os.O_RDONLY)
            stream = WrittenStream(name, SpoolWriter(fd), EventLoop(), notices, on_terminal)
            stack.callback(stream.close)
            return stream

        yield make


def noticed(notices: GrowthNotices) -> list[str]:
    """Acknowledge the last notice, and return the streams in the next one."""
    notices.acknowledged()
    return [end[0] for _, header, _ in FrameDecoder().feed(notices.next()) for end in header["ends"]]


def writing_agent(notices: GrowthNotices, make_stream: Callable[[str, bool], WrittenStream]) -> WrittenStream:
    """Return an agent that has written more since a notice about it."""
    agent = make_stream("agent", False)
    agent.write()
    assert noticed(notices) == ["agent"]
    agent.write()
    assert noticed(notices) == []
    return agent


def test_a_pipe_that_keeps_growing_is_reported_once_per_interval(
    notices: GrowthNotices, make_stream: Callable[[str, bool], WrittenStream]
) -> None:
    agent = writing_agent(notices, make_stream)
    agent.write()
    assert noticed(notices) == []


def test_a_terminal_does_not_wait_for_the_interval_of_a_pipe(
    notices: GrowthNotices, make_stream: Callable[[str, bool], WrittenStream]
) -> None:
    agent, terminal = make_stream("agent", False), make_stream("terminal", True)
    agent.write()
    assert noticed(notices) == ["agent"]
    terminal.write()
    assert noticed(notices) == ["terminal"]


def test_many_terminals_are_reported_once_per_screen_interval_except_for_answers(
    notices: GrowthNotices, loop: EventLoop, make_stream: Callable[[str, bool], WrittenStream]
) -> None:
    one, other = make_stream("one", True), make_stream("other", True)
    one.write()
    assert noticed(notices) == ["one"]
    loop.crowded = True
    other.write()
    assert noticed(notices) == []
    notices.expect_answer([one.stream])
    one.write()
    assert noticed(notices) == ["one"], "an answer is sent at once, without the other terminal"


def test_a_growing_pipe_is_reported_sooner_in_a_crowded_loop(
    notices: GrowthNotices, loop: EventLoop, make_stream: Callable[[str, bool], WrittenStream]
) -> None:
    agent, terminal = make_stream("agent", False), make_stream("terminal", True)
    terminal.write()
    assert noticed(notices) == ["terminal"]
    loop.crowded = True
    terminal.write()
    agent.write()
    assert sorted(noticed(notices)) == ["agent", "terminal"]
    assert loop.coalesce_seconds == 0.0


def test_the_answer_of_an_agent_to_input_is_reported_immediately(
    notices: GrowthNotices, make_stream: Callable[[str, bool], WrittenStream]
) -> None:
    agent = make_stream("agent", False)
    agent.write()
    assert noticed(notices) == ["agent"]
    notices.expect_answer([agent.stream])
    agent.write()
    assert noticed(notices) == ["agent"]


def test_output_before_the_input_does_not_count_as_its_answer(
    notices: GrowthNotices, make_stream: Callable[[str, bool], WrittenStream]
) -> None:
    agent = writing_agent(notices, make_stream)
    notices.expect_answer([agent.stream])
    assert noticed(notices) == []
    agent.write()
    assert noticed(notices) == ["agent"]


def noticed_bytes(notices: GrowthNotices) -> tuple[list[int] | None, bytes]:
    """Return the sizes and the output bytes in the next notice."""
    notices.acknowledged()
    [(_, header, body)] = FrameDecoder().feed(notices.next())
    return header.get("sizes"), body


def test_short_output_of_a_terminal_is_included_in_the_notice(
    notices: GrowthNotices, make_stream: Callable[[str, bool], WrittenStream]
) -> None:
    terminal = make_stream("terminal", True)
    terminal.write(b"one ")
    terminal.write(b"two")
    assert noticed_bytes(notices) == ([7], b"one two")
    terminal.write(b"three")
    assert noticed_bytes(notices) == ([5], b"three")
    terminal.write(bytes(MAX_NOTICE_BYTES - 1))
    terminal.write(b"ab")
    assert noticed_bytes(notices) == (None, b"")
    terminal.write(b"four")
    assert noticed_bytes(notices) == ([4], b"four")


def test_output_of_a_pipe_is_not_included_in_the_notice(
    notices: GrowthNotices, make_stream: Callable[[str, bool], WrittenStream]
) -> None:
    agent = make_stream("agent", False)
    agent.write()
    assert noticed_bytes(notices) == (None, b"")


def test_an_echo_is_reported_alone_and_other_output_shortly_after_it(
    notices: GrowthNotices, loop: EventLoop, make_stream: Callable[[str, bool], WrittenStream]
) -> None:
    others = [make_stream(f"other{n}", True) for n in range(8)]
    shell = make_stream("shell", True)
    notices.expect_answer([shell.stream])
    for each in (*others, shell):
        each.write(each.name.encode())
    assert noticed_bytes(notices) == ([5], b"shell")
    later: list[list[str]] = []

    def take_notice() -> None:
        if names := noticed(notices):
            later.append(sorted(names))
            loop.stop()

    loop.after_iteration = take_notice
    loop.call_later(10, loop.stop)
    loop.run()  # a timer wakes the loop
    assert later == [[other.name for other in others]]


def test_other_output_waits_for_an_expected_echo_up_to_a_limit(
    notices: GrowthNotices,
    loop: EventLoop,
    make_stream: Callable[[str, bool], WrittenStream],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0]
    for module, name, value in (
        (notices_module, "_INTERVAL", 4),
        (notices_module, "monotonic", lambda: now[0]),
        (loop_module, "monotonic", lambda: now[0]),
        (loop_module, "_ECHO_SECONDS", 1),
    ):
        monkeypatch.setattr(module, name, value)

    def noticed_in_the_next_iteration(n: int) -> list[str]:
        now[0] += n
        loop.expect_answer()
        other.write()
        notices._end_hold()
        return noticed(notices)

    other = make_stream("other", True)
    assert noticed_in_the_next_iteration(0) == ["other"], (
        "the first growth after a silence is reported at once"
    )
    assert [noticed_in_the_next_iteration(1) for _ in range(12)] == 2 * [[], [], [], [], [], ["other"]]


def test_a_notice_is_the_json_that_the_manual_shows(
    notices: GrowthNotices, make_stream: Callable[[str, bool], WrittenStream]
) -> None:
    terminal = make_stream("terminal", True)
    terminal.write(b"hello")
    assert notices.next() == encode(Tag.NOTICE, {"ends": [["terminal", 1, "out", 5]], "sizes": [5]}, b"hello")
    notices.acknowledged()
    terminal.write(bytes(MAX_NOTICE_BYTES + 1))
    assert notices.next() == encode(Tag.NOTICE, {"ends": [["terminal", 1, "out", 5 + MAX_NOTICE_BYTES + 1]]})
