"""The link: a dead server's last frames count, notices come one at a time, a deaf server harms nobody."""

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
from keeper.house import PATIENCE, House, until


class RawServer:
    """A connection that speaks frames by hand."""

    def __init__(self, house: House) -> None:
        [path] = (house.home / "keeper").glob("*.sock")
        directory = os.open(path.parent, os.O_PATH)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
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

    def silent(self) -> bool:
        """Whether nothing has been said to us up to now."""
        if self._frames:
            return False
        self.socket.setblocking(False)
        try:
            self._frames += self._decoder.feed(self.socket.recv(65536))
        except BlockingIOError:
            return True
        finally:
            self.socket.settimeout(PATIENCE)
        return not self._frames


@pytest.fixture
async def raw(house: House) -> Iterator[RawServer]:  # type: ignore[misc]
    """A keeper with one child `cat` and no other server than this one."""
    async with house.server():
        await house.spawn(["cat"], tty=False)
    server = RawServer(house)
    yield server
    server.socket.close()


def test_hello_tells_who_the_keeper_is(raw: RawServer, house: House) -> None:
    hello = raw.hello()
    [path] = (house.home / "keeper").glob("*.sock")
    assert hello["version"] == VERSION
    assert hello["keeper"] == path.stem
    assert hello["boot"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert Path(f"/proc/{hello['pid']}").exists()
    assert hello["started"] > 0


def test_a_tag_of_the_future_is_answered_not_punished(raw: RawServer) -> None:
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


def test_noise_ends_the_connection_and_nothing_else(raw: RawServer, house: House) -> None:
    raw.socket.sendall(b"GET / HTTP/1.1\r\n\r\n" * 10)
    tag, fault = raw.receive()
    assert (tag, fault["id"], fault["errno"]) == (Tag.FAULT, None, errno.EPROTO)
    assert raw.socket.recv(100) == b""
    again = RawServer(house)
    again.hello()
    again.socket.close()


def test_a_third_notice_waits_until_the_first_two_were_seen(raw: RawServer, house: House) -> None:
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
    reader = house.reader()
    while reader.end < 6 + 47:
        raw.send(Tag.STATUS, {"id": 100})
        assert raw.receive()[0] == Tag.REPLY
    assert raw.silent()
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
print("greeted", flush=True)
sys.stdin.readline()
def write(n, data):
    return encode(Tag.WRITE, {"id": n, "worker": "w", "run": 1, "writer": "acp", "n": n}, data)
whole = b"".join(write(n, b"%d\\n" % n) for n in range(1, 501))
connection.sendall(whole + write(501, b"cut off\\n")[:-1])
print("sent", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("stopped", [True, False], ids=["keeper busy meanwhile", "keeper reading along"])
async def test_the_last_whole_frames_of_a_killed_server_count(house: House, stopped: bool) -> None:
    async with house.server():
        await house.spawn(["cat"], tty=False)
        keeper = house.keeper.pid
    [path] = (house.home / "keeper").glob("*.sock")
    root = str(Path(sys.modules["bullpen"].__path__[0]).parent)
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, root, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert client.stdin is not None
    assert client.stdout is not None
    assert client.stdout.readline() == "greeted\n"
    if stopped:
        os.kill(keeper, signal.SIGSTOP)
    client.stdin.write("go\n")
    client.stdin.flush()
    assert client.stdout.readline() == "sent\n"
    client.kill()  # it has read none of the answers
    client.wait()
    if stopped:
        os.kill(keeper, signal.SIGCONT)
    async with house.server() as keepers:
        assert keepers.children["w", 1].writers == {"acp": 500}, "known as soon as hello is answered"
        assert await house.keeper.write("w", 1, "acp", 501, b"cut off\n") == 501
        await house.keeper.close_input("w", 1)
        await house.exited()
    assert house.said() == b"".join(b"%d\n" % n for n in range(1, 501)) + b"cut off\n"
    client.stdin.close()
    client.stdout.close()


def test_a_second_server_waits_until_the_first_has_gone(raw: RawServer, house: House) -> None:
    raw.hello()
    second = RawServer(house)
    second.send(Tag.HELLO, {"version": VERSION})
    raw.send(Tag.STATUS, {"id": 1})
    assert raw.receive()[0] == Tag.REPLY
    assert second.silent()
    raw.send(Tag.WRITE, {"id": 2, "worker": "w", "run": 1, "writer": "a", "n": 1}, b"x")
    raw.socket.close()
    assert second.receive()[0] == Tag.HELLO
    second.send(Tag.STATUS, {"id": 1})
    while (answer := second.receive())[0] != Tag.REPLY:
        pass
    assert answer[1]["children"][0]["writers"] == {"a": 1}
    second.socket.close()


async def test_a_server_that_does_not_read_is_not_listened_to(raw: RawServer, house: House) -> None:
    """It neither blocks the keeper nor makes it grow; children go on, and the next server finds all well."""
    keeper = raw.hello()["pid"]
    raw.socket.setblocking(False)
    requests = encode(Tag.STATUS, {"id": 1}) * 1000
    sent = blocked = 0

    def has_no_room_for_long() -> bool:
        nonlocal sent, blocked
        try:
            sent += raw.socket.send(requests[sent % len(requests) :])
            blocked = 0
        except BlockingIOError:
            blocked += 1
        return blocked > 100

    await until(has_no_room_for_long, "an end of the keeper's listening")
    memory = int(Path(f"/proc/{keeper}/status").read_text().split("VmRSS:")[1].split()[0])
    assert memory < 64 * 1024
    raw.socket.close()
    async with house.server() as keepers:
        assert list(keepers.children) == [("w", 1)]
        await keepers.keeper_of("w", 1).write("w", 1, "a", 1, b"well\n")
        await house.says(b"well")


def test_a_stranger_is_turned_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loop, listening = EventLoop(), socket.socket(socket.AF_UNIX)
    listening.bind("s")
    listening.listen()
    accepted: list[socket.socket] = []

    def accept(connection: socket.socket) -> None:
        accepted.append(connection)
        loop.stop()

    ServerListener(listening, loop, accept).open()
    stranger, friend = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    ours = os.getuid()
    uids = iter([ours + 1, ours])
    monkeypatch.setattr(os, "getuid", lambda: next(uids))
    stranger.connect("s")
    friend.connect("s")
    loop.run()
    assert stranger.recv(1) == b"", "another user's connection is closed"
    assert len(accepted) == 1
    accepted[0].send(b"hello")
    assert friend.recv(9) == b"hello"


def test_that_input_was_taken_is_said_before_any_later_answer_but_behind_an_echo() -> None:
    loop, (ours, theirs) = EventLoop(), socket.socketpair()
    connection = ServerConnection(ours, loop, lambda *_: None, lambda: None)
    connection.send_delayed(b"taken ")
    assert not connection.needs_flush
    connection.send_before_delayed(b"echo ")
    connection.flush()
    connection.send_delayed(b"taken ")
    connection.send(b"answer")
    connection.flush()
    assert theirs.recv(100) == b"echo taken taken answer"
    assert not connection.needs_flush
    ours.close()
    theirs.close()


def test_what_nobody_waits_for_goes_by_itself_a_moment_later() -> None:
    loop, (ours, theirs) = EventLoop(), socket.socketpair()
    connection = ServerConnection(ours, loop, lambda *_: None, lambda: None)
    connection.send_delayed(b"taken")

    def speak() -> None:
        if connection.needs_flush:
            connection.flush()
            loop.stop()

    loop.after_iteration = speak
    loop.run()
    assert theirs.recv(100) == b"taken"
    ours.close()
    theirs.close()
