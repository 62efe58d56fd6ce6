"""The connection of keeper and server: the last frames of a killed server count, and notices are limited."""

import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bullpen.keeper.frames import VERSION, FrameDecoder, Tag, encode
from bullpen.keeper.loop import EventLoop
from bullpen.keeper.server_connection import ServerConnection, ServerListener
from keeper.harness import DEADLINE_SECONDS, KeeperHarness, wait_until


class RawServer:
    """A connection to a keeper on which the test sends and receives single frames."""

    def __init__(self, harness: KeeperHarness) -> None:
        [path] = (harness.home / "keeper").glob("*.sock")
        directory = os.open(path.parent, os.O_PATH)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(DEADLINE_SECONDS)
        self.socket.connect(f"/proc/self/fd/{directory}/{path.name}")
        os.close(directory)
        self._decoder = FrameDecoder()
        self._frames: list[tuple[int, dict[str, Any], bytes]] = []

    def send(self, tag: int, header: dict[str, Any], body: bytes = b"") -> None:
        self.socket.sendall(encode(tag, header, body))

    def receive(self) -> tuple[int, dict[str, Any]]:
        while not self._frames:
            data = self.socket.recv(65536)
            assert data, "the keeper has closed the connection"
            self._frames += self._decoder.feed(data)
        tag, header, _ = self._frames.pop(0)
        return tag, header

    def hello(self) -> dict[str, Any]:
        self.send(Tag.HELLO, {"version": VERSION})
        tag, header = self.receive()
        assert tag == Tag.HELLO
        return header

    def has_received_nothing(self) -> bool:
        """Return whether the keeper has sent no frame that was not received yet."""
        if self._frames:
            return False
        self.socket.setblocking(False)
        try:
            self._frames += self._decoder.feed(self.socket.recv(65536))
        except BlockingIOError:
            return True
        finally:
            self.socket.settimeout(DEADLINE_SECONDS)
        return not self._frames


@pytest.fixture
async def raw(harness: KeeperHarness) -> Iterator[RawServer]:  # type: ignore[misc]
    """Connect to a keeper with one child `cat`."""
    async with harness.connect():
        await harness.spawn(["cat"], tty=False)
    server = RawServer(harness)
    yield server
    server.socket.close()


def test_hello_identifies_the_keeper(raw: RawServer, harness: KeeperHarness) -> None:
    hello = raw.hello()
    [path] = (harness.home / "keeper").glob("*.sock")
    assert hello["version"] == VERSION
    assert hello["keeper"] == path.stem
    assert hello["boot"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert Path(f"/proc/{hello['pid']}").exists()
    assert hello["started"] > 0


def test_an_unknown_tag_is_answered_with_a_fault_and_the_connection_stays_open(raw: RawServer) -> None:
    raw.hello()
    raw.send(99, {"id": 5, "anything": [1]}, b"body")
    tag, fault = raw.receive()
    assert (tag, fault["id"], fault["errno"]) == (Tag.FAULT, 5, errno.ENOSYS)
    raw.send(Tag.STATUS, {"id": 6, "field of the future": True})
    tag, reply = raw.receive()
    assert (tag, reply["id"], len(reply["children"])) == (Tag.REPLY, 6, 1)


def test_a_request_before_hello_is_refused(raw: RawServer) -> None:
    raw.send(Tag.STATUS, {"id": 1})
    tag, fault = raw.receive()
    assert (tag, fault["errno"]) == (Tag.FAULT, errno.EPROTO)
    raw.hello()


def test_invalid_bytes_end_only_the_connection(raw: RawServer, harness: KeeperHarness) -> None:
    raw.socket.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
    tag, fault = raw.receive()
    assert (tag, fault["id"], fault["errno"]) == (Tag.FAULT, None, errno.EPROTO)
    assert raw.socket.recv(100) == b""
    again = RawServer(harness)
    again.hello()
    again.socket.close()


def test_a_third_notice_waits_until_the_first_two_were_acknowledged(
    raw: RawServer, harness: KeeperHarness
) -> None:
    raw.hello()
    write = {"worker": "w", "run": 1, "writer": "a"}
    for n in (1, 2):
        raw.send(Tag.WRITE, {"id": n, "n": n, **write}, b"abc")
        answers = [raw.receive(), raw.receive()]
        assert (Tag.REPLY, {"id": n, "last": n}) in answers
        assert (Tag.NOTICE, {"ends": [["w", 1, "out", 3 * n]]}) in answers
    for n in range(3, 50):
        raw.send(Tag.WRITE, {"id": n, "n": n, **write}, b"x")
        assert raw.receive() == (Tag.REPLY, {"id": n, "last": n})
    reader = harness.reader()
    while reader.end < 6 + 47:
        raw.send(Tag.STATUS, {"id": 100})
        assert raw.receive()[0] == Tag.REPLY
    assert raw.has_received_nothing()
    raw.send(Tag.SEEN, {})
    assert raw.receive() == (Tag.NOTICE, {"ends": [["w", 1, "out", 53]]})


CLIENT = """
import os, socket, sys
sys.path.append(sys.argv[1])
from bullpen.keeper.frames import Tag, encode
directory = os.open(os.path.dirname(sys.argv[2]), os.O_PATH)
connection = socket.socket(socket.AF_UNIX)
connection.connect(f"/proc/self/fd/{directory}/{os.path.basename(sys.argv[2])}")
connection.sendall(encode(Tag.HELLO, {"version": 1}))
while not connection.recv(65536): pass
print("connected", flush=True)
sys.stdin.readline()
def write(n, data):
    return encode(Tag.WRITE, {"id": n, "worker": "w", "run": 1, "writer": "acp", "n": n}, data)
whole = b"".join(write(n, b"%d\\n" % n) for n in range(1, 501))
connection.sendall(whole + write(501, b"cut off\\n")[:-1])
print("sent", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("stopped", [True, False], ids=["keeper stopped", "keeper running"])
async def test_the_last_complete_frames_of_a_killed_server_are_executed(
    harness: KeeperHarness, stopped: bool
) -> None:
    async with harness.connect():
        await harness.spawn(["cat"], tty=False)
        keeper = harness.keeper.pid
    [path] = (harness.home / "keeper").glob("*.sock")
    root = str(Path(sys.modules["bullpen"].__path__[0]).parent)
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, root, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert client.stdin is not None
    assert client.stdout is not None
    assert client.stdout.readline() == "connected\n"
    if stopped:
        os.kill(keeper, signal.SIGSTOP)
    client.stdin.write("go\n")
    client.stdin.flush()
    assert client.stdout.readline() == "sent\n"
    client.kill()  # it has read no reply
    client.wait()
    if stopped:
        os.kill(keeper, signal.SIGCONT)
    async with harness.connect() as keepers:
        assert keepers.children["w", 1].writers == {"acp": 500}, "the numbers are known after hello"
        assert await harness.keeper.write("w", 1, "acp", 501, b"cut off\n") == 501
        await harness.keeper.close_input("w", 1)
        await harness.wait_for_exit()
    assert harness.output() == b"".join(b"%d\n" % n for n in range(1, 501)) + b"cut off\n"
    client.stdin.close()
    client.stdout.close()


def test_a_second_server_waits_until_the_first_has_disconnected(
    raw: RawServer, harness: KeeperHarness
) -> None:
    raw.hello()
    second = RawServer(harness)
    second.send(Tag.HELLO, {"version": VERSION})
    raw.send(Tag.STATUS, {"id": 1})
    assert raw.receive()[0] == Tag.REPLY
    assert second.has_received_nothing()
    raw.send(Tag.WRITE, {"id": 2, "worker": "w", "run": 1, "writer": "a", "n": 1}, b"x")
    raw.socket.close()
    assert second.receive()[0] == Tag.HELLO
    second.send(Tag.STATUS, {"id": 1})
    while (answer := second.receive())[0] != Tag.REPLY:
        pass
    assert answer[1]["children"][0]["writers"] == {"a": 1}
    second.socket.close()


async def test_the_keeper_stops_reading_from_a_server_that_does_not_read(
    raw: RawServer, harness: KeeperHarness
) -> None:
    """It does not block the keeper or fill its memory, and the next server can connect."""
    keeper = raw.hello()["pid"]
    raw.socket.setblocking(False)
    requests = encode(Tag.STATUS, {"id": 1}) * 1000
    sent = blocked = 0

    def is_blocked() -> bool:
        nonlocal sent, blocked
        try:
            sent += raw.socket.send(requests[sent % len(requests) :])
            blocked = 0
        except BlockingIOError:
            blocked += 1
        return blocked > 100

    await wait_until(is_blocked, "the keeper to stop reading")
    memory = int(Path(f"/proc/{keeper}/status").read_text().split("VmRSS:")[1].split()[0])
    assert memory < 64 * 1024
    raw.socket.close()
    async with harness.connect() as keepers:
        assert list(keepers.children) == [("w", 1)]
        await keepers.keeper_of("w", 1).write("w", 1, "a", 1, b"well\n")
        await harness.wait_for_output(b"well")


def test_a_connection_of_another_user_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loop, listening = EventLoop(), socket.socket(socket.AF_UNIX)
    listening.bind("s")
    listening.listen()
    accepted: list[socket.socket] = []

    def accept(connection: socket.socket) -> None:
        accepted.append(connection)
        loop.stop()

    ServerListener(listening, loop, accept).open()
    foreign, own = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    uid = os.getuid()
    uids = iter([uid + 1, uid])
    monkeypatch.setattr(os, "getuid", lambda: next(uids))
    foreign.connect("s")
    own.connect("s")
    loop.run()
    assert foreign.recv(1) == b"", "another user's connection is closed"
    assert len(accepted) == 1
    accepted[0].send(b"hello")
    assert own.recv(9) == b"hello"


def test_delayed_replies_are_sent_before_later_replies_and_after_an_echo() -> None:
    loop, (local, remote) = EventLoop(), socket.socketpair()
    connection = ServerConnection(local, loop, lambda *_: None, lambda: None)
    connection.send_delayed(b"accepted ")
    assert not connection.needs_flush
    connection.send_before_delayed(b"echo ")
    connection.flush()
    connection.send_delayed(b"accepted ")
    connection.send(b"answer")
    connection.flush()
    assert remote.recv(100) == b"echo accepted accepted answer"
    assert not connection.needs_flush
    local.close()
    remote.close()


def test_a_delayed_reply_is_sent_after_a_short_delay() -> None:
    loop, (local, remote) = EventLoop(), socket.socketpair()
    connection = ServerConnection(local, loop, lambda *_: None, lambda: None)
    connection.send_delayed(b"accepted")

    def flush_when_needed() -> None:
        if connection.needs_flush:
            connection.flush()
            loop.stop()

    loop.after_iteration = flush_when_needed
    loop.run()
    assert remote.recv(100) == b"accepted"
    local.close()
    remote.close()
