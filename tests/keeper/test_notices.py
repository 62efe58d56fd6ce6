"""When the server is told what has grown: at once what was quiet, the rest by the spell."""

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


class Speaker:
    """A stream whose other end we hold."""

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

    def say(self, words: bytes = b"x") -> None:
        os.write(self._end, words)
        assert self.stream.read()

    def close(self) -> None:
        os.close(self._end)
        self.stream.close()
        self.stream.spool.close()


@pytest.fixture
def notices(monkeypatch: pytest.MonkeyPatch, loop: EventLoop) -> GrowthNotices:
    """A spell on a pipe or in a crowd never ends here, one on a terminal is over at once."""
    monkeypatch.setattr(notices_module, "_PIPE_INTERVAL", 3600.0)
    monkeypatch.setattr(notices_module, "_SCREEN_INTERVAL", 3600.0)
    monkeypatch.setattr(notices_module, "_INTERVAL", 0.0)
    return GrowthNotices(loop)


@pytest.fixture
def loop() -> EventLoop:
    return EventLoop()


@pytest.fixture
def speaker(tmp_path: Path, notices: GrowthNotices) -> Iterator[Callable[[str, bool], Speaker]]:
    with ExitStack() as stack:

        def make(name: str, on_terminal: bool) -> Speaker:
            place = tmp_path / name
            place.mkdir()
            directory = os.open(place, os.O_RDONLY)
            speaker = Speaker(name, SpoolWriter(directory), EventLoop(), notices, on_terminal)
            stack.callback(speaker.close)
            return speaker

        yield make


def told(notices: GrowthNotices) -> list[str]:
    """Whom the next notice is about; the server sees it at once."""
    notices.acknowledged()
    return [end[0] for _, header, _ in FrameDecoder().feed(notices.next()) for end in header["ends"]]


def one_who_goes_on(notices: GrowthNotices, speaker: Callable[[str, bool], Speaker]) -> Speaker:
    """An agent the server was just told of, and that has said more since."""
    agent = speaker("agent", False)
    agent.say()
    assert told(notices) == ["agent"]
    agent.say()
    assert told(notices) == []
    return agent


def test_what_goes_on_on_a_pipe_is_told_once_a_spell(
    notices: GrowthNotices, speaker: Callable[[str, bool], Speaker]
) -> None:
    agent = one_who_goes_on(notices, speaker)
    agent.say()
    assert told(notices) == []


def test_what_goes_on_on_a_terminal_waits_for_no_pipe(
    notices: GrowthNotices, speaker: Callable[[str, bool], Speaker]
) -> None:
    agent, terminal = speaker("agent", False), speaker("terminal", True)
    agent.say()
    assert told(notices) == ["agent"]
    terminal.say()
    assert told(notices) == ["terminal"]


def test_a_crowd_of_terminals_is_told_of_as_often_as_a_screen_is_drawn(
    notices: GrowthNotices, loop: EventLoop, speaker: Callable[[str, bool], Speaker]
) -> None:
    one, other = speaker("one", True), speaker("other", True)
    one.say()
    assert told(notices) == ["one"]
    loop.crowded = True
    other.say()
    assert told(notices) == []
    notices.expect_answer([one.stream])
    one.say()
    assert told(notices) == ["one"], "an answer waits for no spell, and who gave none for it"


def test_who_speaks_on_a_pipe_in_a_crowd_is_heard_sooner(
    notices: GrowthNotices, loop: EventLoop, speaker: Callable[[str, bool], Speaker]
) -> None:
    agent, terminal = speaker("agent", False), speaker("terminal", True)
    terminal.say()
    assert told(notices) == ["terminal"]
    loop.crowded = True
    terminal.say()
    agent.say()
    assert sorted(told(notices)) == ["agent", "terminal"]
    assert loop.coalesce_seconds == 0.0


def test_who_was_answered_is_heard_at_once(
    notices: GrowthNotices, speaker: Callable[[str, bool], Speaker]
) -> None:
    agent = speaker("agent", False)
    agent.say()
    assert told(notices) == ["agent"]
    notices.expect_answer([agent.stream])
    agent.say()
    assert told(notices) == ["agent"]


def test_what_was_said_before_the_input_is_no_answer(
    notices: GrowthNotices, speaker: Callable[[str, bool], Speaker]
) -> None:
    agent = one_who_goes_on(notices, speaker)
    notices.expect_answer([agent.stream])
    assert told(notices) == []
    agent.say()
    assert told(notices) == ["agent"]


def given(notices: GrowthNotices) -> tuple[list[int] | None, bytes]:
    """How many bytes of each the next notice brings, and the bytes."""
    notices.acknowledged()
    [(_, header, body)] = FrameDecoder().feed(notices.next())
    return header.get("sizes"), body


def test_what_a_terminal_says_comes_with_the_notice_as_long_as_it_is_short(
    notices: GrowthNotices, speaker: Callable[[str, bool], Speaker]
) -> None:
    terminal = speaker("terminal", True)
    terminal.say(b"one ")
    terminal.say(b"two")
    assert given(notices) == ([7], b"one two")
    terminal.say(b"three")
    assert given(notices) == ([5], b"three")
    terminal.say(bytes(MAX_NOTICE_BYTES - 1))
    terminal.say(b"ab")
    assert given(notices) == (None, b"")
    terminal.say(b"four")
    assert given(notices) == ([4], b"four")


def test_what_is_said_on_a_pipe_is_read_from_its_spool(
    notices: GrowthNotices, speaker: Callable[[str, bool], Speaker]
) -> None:
    agent = speaker("agent", False)
    agent.say()
    assert given(notices) == (None, b"")


def test_an_echo_comes_alone_and_what_nobody_waits_for_soon_after_it(
    notices: GrowthNotices, loop: EventLoop, speaker: Callable[[str, bool], Speaker]
) -> None:
    others = [speaker(f"other{n}", True) for n in range(8)]
    shell = speaker("shell", True)
    notices.expect_answer([shell.stream])
    for each in (*others, shell):
        each.say(each.name.encode())
    assert given(notices) == ([5], b"shell")
    rest: list[list[str]] = []

    def next_turn() -> None:
        if names := told(notices):
            rest.append(sorted(names))
            loop.stop()

    loop.after_iteration = next_turn
    loop.call_later(10, loop.stop)
    loop.run()  # wakes by itself
    assert rest == [[other.name for other in others]]


def test_what_nobody_waits_for_waits_while_an_echo_may_come_but_not_for_ever(
    notices: GrowthNotices,
    loop: EventLoop,
    speaker: Callable[[str, bool], Speaker],
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

    def told_in_the_next_turn(n: int) -> list[str]:
        now[0] += n
        loop.expect_answer()
        other.say()
        notices._end_hold()
        return told(notices)

    other = speaker("other", True)
    assert told_in_the_next_turn(0) == ["other"], "after a silence"
    assert [told_in_the_next_turn(1) for _ in range(12)] == 2 * [[], [], [], [], [], ["other"]]


def test_a_notice_is_the_json_that_the_manual_shows(
    notices: GrowthNotices, speaker: Callable[[str, bool], Speaker]
) -> None:
    terminal = speaker("terminal", True)
    terminal.say(b"hello")
    assert notices.next() == encode(Tag.NOTICE, {"ends": [["terminal", 1, "out", 5]], "sizes": [5]}, b"hello")
    notices.acknowledged()
    terminal.say(bytes(MAX_NOTICE_BYTES + 1))
    assert notices.next() == encode(Tag.NOTICE, {"ends": [["terminal", 1, "out", 5 + MAX_NOTICE_BYTES + 1]]})
