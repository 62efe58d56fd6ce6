"""When the server is told what has grown: at once what was quiet, the rest by the spell."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bullpen.keeper import notices as notices_module
from bullpen.keeper.frames import Decoder
from bullpen.keeper.loop import Loop
from bullpen.keeper.notices import Notices
from bullpen.keeper.spool import SpoolWriter
from bullpen.keeper.stream import Stream


class Speaker:
    """A stream whose other end we hold."""

    def __init__(
        self, name: str, spool: SpoolWriter, loop: Loop, notices: Notices, on_terminal: bool
    ) -> None:
        out, self._end = os.pipe()
        self.stream = Stream(
            (name, 1, "out"),
            out,
            spool,
            loop=loop,
            grown=notices.grown,
            on_end=lambda: None,
            window=None,
            on_terminal=on_terminal,
        )

    def say(self) -> None:
        os.write(self._end, b"x")
        assert self.stream.read()

    def close(self) -> None:
        os.close(self._end)
        self.stream.close()
        self.stream.spool.close()


@pytest.fixture
def notices(monkeypatch: pytest.MonkeyPatch) -> Notices:
    """A spell on a pipe never ends here, one on a terminal is over at once."""
    monkeypatch.setattr(notices_module, "_PIPE_SPELL", 3600.0)
    monkeypatch.setattr(notices_module, "_SPELL", 0.0)
    return Notices(Loop())


@pytest.fixture
def speaker(tmp_path: Path, notices: Notices) -> Iterator[Callable[[str, bool], Speaker]]:
    with ExitStack() as stack:

        def make(name: str, on_terminal: bool) -> Speaker:
            place = tmp_path / name
            place.mkdir()
            directory = os.open(place, os.O_RDONLY)
            speaker = Speaker(name, SpoolWriter(directory), Loop(), notices, on_terminal)
            stack.callback(speaker.close)
            return speaker

        yield make


def told(notices: Notices) -> list[str]:
    """Whom the next notice is about; the server sees it at once."""
    notices.seen()
    return [end[0] for _, header, _ in Decoder().feed(notices.next()) for end in header["ends"]]


def one_who_goes_on(notices: Notices, speaker: Callable[[str, bool], Speaker]) -> Speaker:
    """An agent the server was just told of, and that has said more since."""
    agent = speaker("agent", False)
    agent.say()
    assert told(notices) == ["agent"]
    agent.say()
    assert told(notices) == []
    return agent


def test_what_goes_on_on_a_pipe_is_told_once_a_spell(
    notices: Notices, speaker: Callable[[str, bool], Speaker]
) -> None:
    agent = one_who_goes_on(notices, speaker)
    agent.say()
    assert told(notices) == []


def test_what_goes_on_on_a_terminal_waits_for_no_pipe(
    notices: Notices, speaker: Callable[[str, bool], Speaker]
) -> None:
    agent, terminal = speaker("agent", False), speaker("terminal", True)
    agent.say()
    assert told(notices) == ["agent"]
    terminal.say()
    assert told(notices) == ["terminal"]


def test_who_was_answered_is_heard_at_once(notices: Notices, speaker: Callable[[str, bool], Speaker]) -> None:
    agent = speaker("agent", False)
    agent.say()
    assert told(notices) == ["agent"]
    notices.expect([agent.stream])
    agent.say()
    assert told(notices) == ["agent"]


def test_what_was_said_before_the_input_is_no_answer(
    notices: Notices, speaker: Callable[[str, bool], Speaker]
) -> None:
    agent = one_who_goes_on(notices, speaker)
    notices.expect([agent.stream])
    assert told(notices) == []
    agent.say()
    assert told(notices) == ["agent"]
