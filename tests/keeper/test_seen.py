"""When a server acknowledges notices with SEEN: with its next request, or when the keeper waits for it."""

import asyncio
from typing import Any, cast

from bullpen.keeper import remote
from bullpen.keeper.frames import MAX_NOTICES_IN_FLIGHT, FrameDecoder, Tag, encode
from bullpen.keeper.remote import Keeper, OnOutput
from keeper.harness import wait_until

NOTICE = encode(Tag.NOTICE, {"ends": []})


class RecordingTransport:
    """A transport that records the tags of the frames that the server writes."""

    def __init__(self) -> None:
        self.tags: list[int] = []
        self._decoder = FrameDecoder()

    def write(self, data: bytes) -> None:
        self.tags += [tag for tag, _, _ in self._decoder.feed(data)]


def connect(on_output: OnOutput = lambda *_: None) -> tuple[Keeper, RecordingTransport]:
    keeper, transport = Keeper(on_output, lambda _: None), RecordingTransport()
    keeper.connection_made(cast("asyncio.Transport", transport))
    return keeper, transport


async def test_seen_is_sent_when_the_keeper_waits_for_it() -> None:
    keeper, transport = connect()
    for _ in range(MAX_NOTICES_IN_FLIGHT - 1):
        keeper.data_received(NOTICE)
    assert transport.tags == []
    keeper.data_received(NOTICE)
    assert transport.tags == [Tag.SEEN]


async def test_a_callback_that_raises_for_one_child_does_not_affect_others() -> None:
    workers: list[str] = []
    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context["exception"]))

    def on_output(worker: str, *_: object) -> None:
        if worker == "bad":
            raise ValueError("of a callback")
        workers.append(worker)

    keeper, _ = connect(on_output)
    frames = [encode(Tag.NOTICE, {"ends": [[name, 1, "out", 1]]}) for name in ("one", "bad", "other")]
    keeper.data_received(b"".join(frames))
    assert workers == ["one", "other"]
    assert [str(error) for error in errors] == ["of a callback"]


async def test_a_notice_whose_callback_raised_is_acknowledged() -> None:
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)

    def fail(*_: object) -> None:
        raise ValueError("of a callback")

    keeper, transport = connect(fail)
    keeper.data_received(encode(Tag.NOTICE, {"ends": [["bad", 1, "out", 1]]}) * MAX_NOTICES_IN_FLIGHT)
    assert transport.tags == [Tag.SEEN]  # without it the keeper would never send a notice again


async def test_seen_is_sent_after_the_next_request() -> None:
    keeper, transport = connect()
    keeper.data_received(NOTICE)
    keeper.resize("w", 1, 80, 24)
    keeper.resize("w", 1, 90, 24)
    assert transport.tags == [Tag.RESIZE, Tag.SEEN, Tag.RESIZE]


async def test_seen_is_sent_after_a_short_delay_without_a_request(monkeypatch: Any) -> None:
    monkeypatch.setattr(remote, "_MAX_SEEN_DELAY", 0.01)
    keeper, transport = connect()
    keeper.data_received(NOTICE)
    await wait_until(lambda: transport.tags == [Tag.SEEN], "SEEN")


async def test_seen_is_not_sent_to_a_keeper_that_does_not_wait_for_it(monkeypatch: Any) -> None:
    monkeypatch.setattr(remote, "_MAX_SEEN_DELAY", 0.0)
    keeper, transport = connect()
    handshake = asyncio.create_task(keeper.handshake())
    await asyncio.sleep(0)
    hello = {"keeper": "k", "version": 1, "pid": 1, "boot": "b", "notices": MAX_NOTICES_IN_FLIGHT}
    keeper.data_received(encode(Tag.HELLO, hello))
    await wait_until(lambda: transport.tags == [Tag.HELLO, Tag.STATUS], "HELLO and STATUS")
    keeper.data_received(encode(Tag.REPLY, {"id": 1, "children": []}) + NOTICE)
    await handshake
    await asyncio.sleep(0.05)
    assert transport.tags == [Tag.HELLO, Tag.STATUS]
    keeper.data_received(NOTICE)
    assert transport.tags == [Tag.HELLO, Tag.STATUS, Tag.SEEN]
