"""Random and mutated frames are sent to a real keeper: it keeps running, and so do its other children."""

import asyncio
import errno
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from bullpen.keeper.frames import VERSION, FrameDecoder, Tag, encode
from keeper.harness import KeeperHarness, has_ended
from support.fuzzing import fuzz, mutated_bytes, mutated_json, replay
from support.memory import peak, reset_peak

SECONDS = 60.0
BYSTANDER = "bystander"  # the worker of a child that no frame of the fuzzer names
MAX_GROWTH_BYTES = 200 << 20  # a frame has at most 80 MiB

SPAWN = {
    "id": 1,
    "worker": "w",
    "run": 1,
    "nonce": "n",
    "argv": ["cat"],
    "env": {"PATH": "/usr/bin:/bin"},
    "cwd": "/",
    "tty": False,
    "cols": 80,
    "rows": 24,
    "limits": {"NOFILE": 100},
    "umask": 18,
}
KEY = {"id": 2, "worker": "w", "run": 1}
FRAMES: list[list[Any]] = [
    [Tag.HELLO, {"version": VERSION}, ""],
    [Tag.SPAWN, SPAWN, ""],
    [Tag.SPAWN, SPAWN | {"tty": True, "nonce": "t", "run": 2, "limits": {}}, ""],
    [Tag.SPAWN, SPAWN | {"argv": ["sh", "-c", "exit 3"], "nonce": "e", "run": 3, "limits": {"AS": 0}}, ""],
    [Tag.WRITE, KEY | {"writer": "a", "n": 1}, "hello\n"],
    [Tag.RESIZE, KEY | {"run": 2, "cols": 100, "rows": 30}, ""],
    [Tag.SIGNAL, KEY | {"signal": 9}, ""],
    [Tag.CLOSE_INPUT, KEY, ""],
    [Tag.STATUS, {"id": 3}, ""],
    [Tag.CONSUMED, KEY | {"offset": 3}, ""],
    [Tag.ACK_EXIT, KEY, ""],
    [Tag.FORGET, KEY, ""],
    [Tag.SEEN, {}, ""],
    [99, {"id": 4}, "x"],
]


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Draw what a server might send over one connection: valid frames, mutated frames or random bytes."""
    hello = FRAMES[0]
    frames = [hello, *draw(st.lists(mutated_json(FRAMES, 2), min_size=1, max_size=6))]
    data = b"".join(map(encoded, frames))
    return draw(mutated_bytes([data], 2)) if draw(st.integers(0, 3)) == 0 else data


def encoded(frame: Any) -> bytes:
    try:
        tag, header, body = frame
        return encode(tag, header, body.encode())
    except Exception:  # noqa: BLE001 (a value that is not a frame is sent as JSON)
        return json.dumps(frame).encode()


class FuzzedKeeper:
    """A keeper with a bystander: a child that no input may affect."""

    def __init__(self, harness: KeeperHarness) -> None:
        self.harness = harness
        [self.path] = (harness.home / "keeper").glob("*.sock")
        self.pid: int = self.ask(Tag.STATUS)[0]["pid"]
        self.bystander: int = self.children()[BYSTANDER, 1]["pid"]
        self.written = 0

    def connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(SECONDS)
        directory = os.open(self.path.parent, os.O_PATH)
        connection.connect(f"/proc/self/fd/{directory}/{self.path.name}")
        os.close(directory)
        return connection

    def ask(self, tag: int, header: dict[str, Any] | None = None, body: bytes = b"") -> list[dict[str, Any]]:
        """Send hello and one request; return the headers of both answers."""
        with self.connect() as connection:
            connection.sendall(encode(Tag.HELLO, {}) + encode(tag, {"id": 7} | (header or {}), body))
            decoder, answers = FrameDecoder(), list[dict[str, Any]]()
            while len(answers) < 2:
                data = connection.recv(1 << 16)
                assert data, "the keeper closed the connection"
                wanted = (Tag.HELLO, Tag.REPLY, Tag.FAULT)
                answers += [header for tag, header, _ in decoder.feed(data) if tag in wanted]
            return answers

    def children(self) -> dict[tuple[str, int], dict[str, Any]]:
        return {(each["worker"], each["run"]): each for each in self.ask(Tag.STATUS)[1]["children"]}

    def send(self, data: bytes) -> bytes:
        """Send bytes as a server that then disconnects; return what the keeper sent until it closed."""
        received = b""
        with self.connect() as connection, suppress(ConnectionError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(1 << 16):
                received += piece
        return received

    def check(self, data: bytes) -> None:
        before = reset_peak(self.pid)
        received = self.send(data)
        for tag, header, _ in _frames(received):
            assert tag in (Tag.HELLO, Tag.REPLY, Tag.FAULT, Tag.NOTICE, Tag.EXIT)
            assert tag != Tag.FAULT or isinstance(header["message"], str)
        children = self.children()
        assert children[BYSTANDER, 1]["pid"] == self.bystander
        assert not has_ended(self.bystander)
        self.written += 1
        write = {"worker": BYSTANDER, "run": 1, "writer": "a", "n": self.written}
        assert self.ask(Tag.WRITE, write, b"x\n")[1] == {"id": 7, "last": self.written}
        assert peak(self.pid) - before < MAX_GROWTH_BYTES
        self.clean_up(children)

    def clean_up(self, children: dict[tuple[str, int], dict[str, Any]]) -> None:
        """End the children that the fuzzer started, by the pids that the keeper reports."""
        other_children = set(children) - {(BYSTANDER, 1)}
        deadline = time.monotonic() + SECONDS
        while other_children:
            assert time.monotonic() < deadline, other_children
            for key, child in self.children().items():
                if key not in other_children:
                    continue
                if child["exit"] is None:
                    with suppress(ProcessLookupError):
                        os.killpg(child["pid"], signal.SIGKILL)
                else:
                    child_key = {"worker": key[0], "run": key[1]}
                    self.ask(Tag.ACK_EXIT, child_key)
                    self.ask(Tag.FORGET, child_key)
                    other_children.discard(key)


def _frames(data: bytes) -> Iterator[tuple[int, dict[str, Any], bytes]]:
    yield from FrameDecoder().feed(data)


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[FuzzedKeeper]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    harness = KeeperHarness(home)

    async def start() -> None:
        async with harness.connect():
            await harness.spawn(["cat"], BYSTANDER, tty=False)

    asyncio.run(start())
    yield FuzzedKeeper(harness)
    harness.close()


def test_frames_that_once_failed_do_not_harm_the_keeper(keeper: FuzzedKeeper) -> None:
    replay("keeper", keeper.check)


def test_mutated_frames_do_not_harm_the_keeper(keeper: FuzzedKeeper) -> None:
    fuzz("keeper", streams(), keeper.check, 200)


@pytest.mark.parametrize(
    "noise", [b"GET / HTTP/1.1\r\n\r\n", encode(Tag.STATUS, {"id": 1})[:-2] + b"]]"], ids=["HTTP", "JSON"]
)
def test_a_wrong_frame_is_answered_with_a_reason_before_the_connection_is_closed(
    keeper: FuzzedKeeper, noise: bytes
) -> None:
    frames = list(_frames(keeper.send(encode(Tag.HELLO, {}) + encode(Tag.STATUS, {"id": 5}) + noise)))
    assert [tag for tag, _, _ in frames] == [Tag.HELLO, Tag.REPLY, Tag.FAULT]
    fault = frames[-1][1]
    assert (fault["id"], fault["errno"]) == (None, errno.EPROTO)
    assert fault["message"]


@pytest.mark.parametrize("field", ["worker", "nonce", "writer"])
def test_a_name_of_20_mb_is_refused_in_a_short_fault(keeper: FuzzedKeeper, field: str) -> None:
    tag = Tag.WRITE if field == "writer" else Tag.SPAWN
    header = SPAWN | {"worker": BYSTANDER, "run": 1, "writer": "a", "n": 1} | {field: "\\" * (20 << 20)}
    frames = list(_frames(keeper.send(encode(Tag.HELLO, {}) + encode(tag, header))))
    assert [tag for tag, _, _ in frames] == [Tag.HELLO, Tag.FAULT]
    assert len(frames[-1][1]["message"]) < 2000
    keeper.children()
