"""Thousands of invalid frames on the sockets: each gets an error, and no other viewer is affected."""

import asyncio
import json
import random
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from support.server import Server
from support.terminal_viewer import TerminalViewer, TerminalWriter

MESSAGES = 10_000
BROKEN = 500
BURST = 100

WORDS = ["input", "ack", "resize", "image", "subscribe", "prompt", "permission", "looking", "", "nonsense"]
VALUES: list[Any] = [None, True, -1, 1 << 70, 0.5, "x", "", [], {}, [[]], "\x00", "é" * 60, {"type": "input"}]
NOT_JSON = ["", "{", "[1,2", "input", '{"type":', "[" * 3000, '"' * 9, "{}{}", '{"a":1e999}', "\ufffd"]

HEAD = b"\x81"  # of an unfragmented text frame
BROKEN_FRAMES = [
    b"\x81\x05hello",  # not masked
    b"\xff\x80\0\0\0\0",  # an unknown opcode, and all reserved bits
    b"\x83\x80\0\0\0\0",
    b"\x80\x80\0\0\0\0",  # a continuation frame without a beginning
    b"\x01\x81\0\0\0\0a" + HEAD + b"\x81\0\0\0\0b",  # a new text frame in the middle of a fragmented one
    b"\x09\x80\0\0\0\0",  # a fragmented ping
    HEAD + b"\x82\0\0\0\0\xff\xfe",  # not UTF-8
    HEAD + b"\xff" + b"\xff" * 8 + b"\0\0\0\0",  # the largest length
    b"\x88\x81\0\0\0\0x",  # a close frame with half a code
]


def invalid_message(rng: random.Random) -> str:
    """Return a text that is usually not a valid message for a socket."""
    match rng.randrange(4):
        case 0:
            return rng.choice(NOT_JSON)
        case 1:
            return json.dumps(rng.choice(VALUES))
        case _:
            fields = {"type": rng.choice([*WORDS, *VALUES])}
            return json.dumps(fields | {rng.choice(["n", "cols", "offset", "after"]): rng.choice(VALUES)})


async def send_all(ws: ClientConnection, messages: list[str]) -> None:
    """Send all messages: single ones, which take the server's fast path, and bursts, which it queues."""
    rng = random.Random(len(messages))
    while messages:
        some = messages[: rng.choice([1, 1, BURST])]
        del messages[: len(some)]
        await asyncio.gather(*(ws.send(each) for each in some))


async def count_errors(ws: ClientConnection, mark: str) -> int:
    """Return the number of errors up to the one about the message with this mark."""
    count = 0
    while True:
        frame = await ws.recv()
        if isinstance(frame, bytes) or (answer := json.loads(frame))["type"] != "error":
            continue
        count += 1
        if answer.get("id") == mark or mark in answer["message"]:
            return count


@pytest.mark.parametrize("path", ["/ws/session/{session}", "/ws/session/{session}/worker/{worker}"])
async def test_each_of_thousands_of_invalid_messages_gets_an_error(server: Server, path: str) -> None:
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    url = path.format(session=session["id"], worker=worker["id"])
    rng = random.Random(path)
    invalid = [each for each in (invalid_message(rng) for _ in range(MESSAGES)) if not _is_valid(each)]
    viewer = TerminalViewer(server, session["id"], worker["id"])
    async with viewer.watching(), server.socket(url) as ws:
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(count_errors(ws, "the-last"))
            await send_all(ws, [*invalid, '{"type":"the-last","id":"the-last"}'])
        assert reading.result() == len(invalid) + 1
        await TerminalWriter(server, session["id"], worker["id"], "writer").type("echo st''ill here\n")
        await viewer.until_seen(b"still here")


async def test_a_client_that_breaks_the_protocol_is_disconnected_and_no_other_client(server: Server) -> None:
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    path = f"/ws/session/{session['id']}/worker/{worker['id']}"
    viewer = TerminalViewer(server, session["id"], worker["id"])
    async with viewer.watching():
        for number in range(BROKEN):
            async with server.socket(path) as ws:
                ws.transport.write(BROKEN_FRAMES[number % len(BROKEN_FRAMES)])
                with pytest.raises(ConnectionClosed):
                    while True:
                        await ws.recv()
        await TerminalWriter(server, session["id"], worker["id"], "writer").type("echo st''ill here\n")
        await viewer.until_seen(b"still here")


def _is_valid(text: str) -> bool:
    """Return whether the text is a valid message for one of the sockets; a few random ones are."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(message, dict) and (
        message.get("type") == "subscribe" or message.get("offset") == 1 << 70
    )
