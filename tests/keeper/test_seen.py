"""When a server says that it has seen what it was told: as late as nobody waits for it."""

import asyncio
from typing import Any, cast

from bullpen.keeper import remote
from bullpen.keeper.frames import MAX_NOTICES_IN_FLIGHT, FrameDecoder, Tag, encode
from bullpen.keeper.remote import Keeper, OnOutput
from keeper.house import until

NOTICE = encode(Tag.NOTICE, {"ends": []})


class Line:
    """What the server says, by its tags; the keeper at the other end only listens."""

    def __init__(self) -> None:
        self.said: list[int] = []
        self._decoder = FrameDecoder()

    def write(self, data: bytes) -> None:
        self.said += [tag for tag, _, _ in self._decoder.feed(data)]


def connected(on_output: OnOutput = lambda *_: None) -> tuple[Keeper, Line]:
    keeper, line = Keeper(on_output, lambda _: None), Line()
    keeper.connection_made(cast("asyncio.Transport", line))
    return keeper, line


async def test_it_is_said_when_the_keeper_waits_for_it() -> None:
    keeper, line = connected()
    for _ in range(MAX_NOTICES_IN_FLIGHT - 1):
        keeper.data_received(NOTICE)
    assert line.said == []
    keeper.data_received(NOTICE)
    assert line.said == [Tag.SEEN]


async def test_who_makes_a_mistake_with_what_one_child_said_loses_no_other() -> None:
    heard: list[str] = []
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: told.append(what["exception"]))

    def hear(worker: str, *_: object) -> None:
        if worker == "bad":
            raise ValueError("of a listener")
        heard.append(worker)

    keeper, _ = connected(hear)
    frames = [encode(Tag.NOTICE, {"ends": [[name, 1, "out", 1]]}) for name in ("one", "bad", "other")]
    keeper.data_received(b"".join(frames))
    assert heard == ["one", "other"]
    assert [str(error) for error in told] == ["of a listener"]


async def test_what_nobody_could_make_sense_of_was_seen_too() -> None:
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)

    def fail(*_: object) -> None:
        raise ValueError("of a listener")

    keeper, line = connected(fail)
    keeper.data_received(encode(Tag.NOTICE, {"ends": [["bad", 1, "out", 1]]}) * MAX_NOTICES_IN_FLIGHT)
    assert line.said == [Tag.SEEN]  # else the keeper would wait for ever with what all the others say


async def test_it_goes_with_a_request_and_behind_it() -> None:
    keeper, line = connected()
    keeper.data_received(NOTICE)
    keeper.resize("w", 1, 80, 24)
    keeper.resize("w", 1, 90, 24)
    assert line.said == [Tag.RESIZE, Tag.SEEN, Tag.RESIZE]


async def test_a_keeper_that_waits_for_each_gets_it_a_moment_later(monkeypatch: Any) -> None:
    monkeypatch.setattr(remote, "_MAX_SEEN_DELAY", 0.01)
    keeper, line = connected()
    keeper.data_received(NOTICE)
    await until(lambda: line.said == [Tag.SEEN], "SEEN")


async def test_a_keeper_that_does_not_wait_for_one_is_not_woken_for_it(monkeypatch: Any) -> None:
    monkeypatch.setattr(remote, "_MAX_SEEN_DELAY", 0.0)
    keeper, line = connected()
    greeting = asyncio.create_task(keeper.handshake())
    await asyncio.sleep(0)
    hello = {"keeper": "k", "version": 1, "pid": 1, "boot": "b", "notices": MAX_NOTICES_IN_FLIGHT}
    keeper.data_received(encode(Tag.HELLO, hello))
    await until(lambda: line.said == [Tag.HELLO, Tag.STATUS], "its children are asked for")
    keeper.data_received(encode(Tag.REPLY, {"id": 1, "children": []}) + NOTICE)
    await greeting
    await asyncio.sleep(0.05)
    assert line.said == [Tag.HELLO, Tag.STATUS]
    keeper.data_received(NOTICE)
    assert line.said == [Tag.HELLO, Tag.STATUS, Tag.SEEN]
