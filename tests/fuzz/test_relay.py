"""Mutated requests on the relay socket of a real server: each is answered until the session has ended."""

import json
from contextlib import suppress
from typing import Any

from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosedOK
from websockets.sync.client import ClientConnection

from fuzz.conftest import FuzzedServer
from support.fuzzing import fuzz, mutated_bytes, mutated_json, replay

UNKNOWN = "4c0f1f0e-3a52-4a0e-9d0b-6a5f1b1d2c01"
# SESSION stands for the session of the socket.
REQUESTS: list[Any] = [
    {"type": "session:create", "id": 1},
    {
        "type": "agent:spawn",
        "sessionId": "SESSION",
        "role": "coder",
        "workspace": "/tmp",
        "agentId": "nosuch",
    },
    {"type": "agent:message", "sessionId": "SESSION", "role": "coder", "content": "hello"},
    {"type": "agent:terminate", "sessionId": "SESSION", "role": "coder"},
    {"type": "agent:list", "sessionId": "SESSION"},
    {"type": "agent:get", "sessionId": "SESSION", "role": "coder"},
    {"type": "agent:list", "sessionId": UNKNOWN},
    {"type": "session:terminate", "sessionId": "SESSION"},
]
MARK = "the-last"


@st.composite
def conversations(draw: st.DrawFn) -> bytes:
    """Draw the messages of a conversation, one in each line."""
    requests = [REQUESTS[0], *draw(st.lists(mutated_json(REQUESTS, 2), min_size=1, max_size=5))]
    texts = [json.dumps(request).encode() for request in requests]
    if draw(st.integers(0, 3)) == 0:
        texts.append(draw(mutated_bytes(texts, 2)).replace(b"\n", b""))
    return b"\n".join(texts)


def check_relay(fuzzed: FuzzedServer, data: bytes) -> None:
    with fuzzed.socket("/ws/relay") as ws:
        ws.send(json.dumps(REQUESTS[0]))
        session = json.loads(ws.recv(timeout=60))["sessionId"]
        for text in data.replace(b"SESSION", session.encode()).split(b"\n"):
            _send(ws, text.decode("utf-8", "replace"))
        _send(ws, json.dumps({"type": MARK, "id": MARK}))
        _read_until_mark(ws)
    for each in fuzzed.call("GET", "/api/sessions?status=active").json()["sessions"]:
        fuzzed.call("DELETE", f"/api/sessions/{each['id']}?purge=true")
    fuzzed.check_log()


def _send(ws: ClientConnection, text: str) -> None:
    with suppress(ConnectionClosedOK):  # the server closes the socket when the session has ended
        ws.send(text)


def _read_until_mark(ws: ClientConnection) -> None:
    ended = False
    while True:
        try:
            message = json.loads(ws.recv(timeout=60))
        except ConnectionClosedOK:
            assert ended
            return
        ended = ended or message["type"] == "session:terminated"
        assert isinstance(message["type"], str)
        if message["type"] == "error":
            assert isinstance(message["message"], str)
            assert message["error"] != "internal", message
            if message.get("id") == MARK:
                return


def test_relay_requests_that_once_failed_are_answered(fuzzed: FuzzedServer) -> None:
    replay("relay", lambda data: check_relay(fuzzed, data))


def test_mutated_relay_requests_are_answered(fuzzed: FuzzedServer) -> None:
    fuzz("relay", conversations(), lambda data: check_relay(fuzzed, data), 40)
