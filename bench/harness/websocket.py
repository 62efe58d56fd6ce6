"""The WebSocket client for all systems: it blocks, reads large pieces, and copies nothing.

It was written for these benchmarks, so that the client is never the bottleneck and costs the same for every
system. It reads the frames that these servers send (complete and unmasked) and refuses others.
"""

import os
import socket
from base64 import b64encode

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
SILENCE = 60.0  # seconds without a byte after which a read fails
RECEIVE_BUFFER = 1 << 20


class Closed(ConnectionError):
    """The server closed the socket."""


class WebSocket:
    def __init__(self, port: int, path: str, headers: dict[str, str] | None = None) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SILENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(RECEIVE_BUFFER)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0
        self._shake_hands(port, path, headers or {})

    def _shake_hands(self, port: int, path: str, headers: dict[str, str]) -> None:
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Version: 13",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        while (head := self._buffer.find(b"\r\n\r\n", 0, self._end)) < 0:
            self._fill(1)
        status = bytes(self._view[: self._buffer.find(b"\r\n")])
        if b" 101 " not in status:
            raise Closed(status.decode())
        self._start = head + 4

    def send(self, opcode: int, payload: bytes) -> None:
        """Send one frame. Its mask is zero, which is allowed and costs the server the same."""
        length = len(payload)
        if length < 126:
            head = bytes([0x80 | opcode, 0x80 | length])
        else:
            head = bytes([0x80 | opcode, 0x80 | 126]) + length.to_bytes(2, "big")
        self.socket.sendall(head + b"\0\0\0\0" + payload)

    def receive(self) -> tuple[int, memoryview]:
        """Return the next data frame; its payload is valid only until the next call."""
        while True:
            opcode, payload = self._frame()
            if opcode in (TEXT, BINARY):
                return opcode, payload
            if opcode == CLOSE:
                raise Closed(bytes(payload[2:]).decode(errors="replace") or "no reason given")
            if opcode == PING:
                self.send(PONG, bytes(payload))

    def _frame(self) -> tuple[int, memoryview]:
        self._need(2)
        first, length = self._buffer[self._start], self._buffer[self._start + 1]
        header = 2
        if length >= 126:
            header = 4 if length == 126 else 10
            self._need(header)
            length = int.from_bytes(self._view[self._start + 2 : self._start + header], "big")
        if not first & 0x80 or first & 0x0F == CONTINUATION:
            raise ValueError("fragmented frames are not supported")
        self._need(header + length)
        body = self._start + header
        self._start = body + length
        return first & 0x0F, self._view[body : body + length]

    def _need(self, count: int) -> None:
        while self._end - self._start < count:
            self._fill(count)

    def _fill(self, count: int) -> None:
        """Read once, with space for `count` unread bytes and more."""
        if self._start == self._end:
            self._start = self._end = 0
        if self._start + count > len(self._buffer) or len(self._buffer) - self._end < RECEIVE_BUFFER // 4:
            self._make_room(count)
        received = self.socket.recv_into(self._view[self._end :])
        if not received:
            raise Closed("end of stream")
        self._end += received

    def _make_room(self, count: int) -> None:
        """Move the unread bytes to the front, of a larger buffer if the frame does not fit into this one."""
        rest = bytes(self._view[self._start : self._end])
        if count > len(self._buffer) - RECEIVE_BUFFER // 4:
            self._buffer = bytearray(count + RECEIVE_BUFFER)
            self._view = memoryview(self._buffer)
        self._view[: len(rest)] = rest
        self._start, self._end = 0, len(rest)

    def close(self) -> None:
        self.socket.close()
