"""When keystrokes are acknowledged: after a short delay, several at once, never between one and its echo."""

import asyncio

import pytest

from bullpen.web.sockets import acks
from bullpen.web.sockets.acks import InputAcks


class AckRecorder:
    """Records each acknowledged number at once, as a socket does that has nothing else to send."""

    def __init__(self) -> None:
        self.acks = InputAcks(self._record)
        self.numbers: list[int] = []
        self._recorded = asyncio.Event()

    def _record(self) -> None:
        self.acks.due = False
        self.numbers.append(self.acks.last)
        self._recorded.set()

    async def next_number(self) -> int:
        self._recorded.clear()
        async with asyncio.timeout(10):
            await self._recorded.wait()
        return self.numbers[-1]


async def test_a_keystroke_is_acknowledged_shortly_after_it_was_accepted() -> None:
    recorder = AckRecorder()
    recorder.acks.note_sent()
    recorder.acks.note_accepted(1)
    assert recorder.numbers == []
    assert await recorder.next_number() == 1


async def test_one_acknowledgement_covers_many_keystrokes() -> None:
    recorder = AckRecorder()
    for n in range(1, 100):
        recorder.acks.note_sent()
        recorder.acks.note_accepted(n)
    assert await recorder.next_number() == 99
    assert recorder.numbers == [99]


@pytest.mark.parametrize(("second", "acknowledged"), [(2, 2), (None, 1)], ids=["taken", "refused"])
async def test_no_acknowledgement_is_sent_between_a_keystroke_and_its_echo(
    monkeypatch: pytest.MonkeyPatch, second: int | None, acknowledged: int
) -> None:
    monkeypatch.setattr(acks, "DELAY_SECONDS", 0.0)
    recorder = AckRecorder()
    recorder.acks.note_sent()
    recorder.acks.note_accepted(1)
    recorder.acks.note_sent()
    await asyncio.sleep(0.05)  # the delay is over, and the keeper has not accepted the second keystroke yet
    assert recorder.numbers == []
    recorder.acks.note_accepted(second)
    assert recorder.numbers == [acknowledged]


async def test_flush_sends_a_pending_acknowledgement_once() -> None:
    recorder = AckRecorder()
    recorder.acks.flush()
    assert recorder.numbers == []
    recorder.acks.note_sent()
    recorder.acks.note_accepted(1)
    recorder.acks.flush()
    assert recorder.numbers == [1]
    recorder.acks.flush()
    assert recorder.numbers == [1]
