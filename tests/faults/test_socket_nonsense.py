"""Thousands of frames of nonsense on the sockets (S-17): an error for each, and nobody else notices."""

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
AT_ONCE = 100

WORDS = ["input", "ack", "resize", "image", "subscribe", "prompt", "permission", "looking", "", "nonsense"]
VALUES: list[Any] = [None, True, -1, 1 << 70, 0.5, "x", "", [], {}, [[]], "\x00", "é" * 60, {"type": "input"}]
NOT_JSON = ["", "{", "[1,2", "input", '{"type":', "[" * 3000, '"' * 9, "{}{}", '{"a":1e999}', "\ufffd"]

HEAD = b"\x81"  # of a text that is whole
BROKEN_FRAMES = [
    b"\x81\x05hello",  # not masked
    b"\xff\x80\0\0\0\0",  # an opcode nobody knows, and all the reserved bits
    b"\x83\x80\0\0\0\0",
    b"\x80\x80\0\0\0\0",  # goes on with nothing
    b"\x01\x81\0\0\0\0a" + HEAD + b"\x81\0\0\0\0b",  # a new text in the middle of another
    b"\x09\x80\0\0\0\0",  # a ping in pieces
    HEAD + b"\x82\0\0\0\0\xff\xfe",  # no UTF-8
    HEAD + b"\xff" + b"\xff" * 8 + b"\0\0\0\0",  # longer than anything
    b"\x88\x81\0\0\0\0x",  # a closing frame with half a code
]


def message(dice: random.Random) -> str:
    """What a socket cannot make sense of, though it is a text."""
    match dice.randrange(4):
        case 0:
            return dice.choice(NOT_JSON)
        case 1:
            return json.dumps(dice.choice(VALUES))
        case _:
            said = {"type": dice.choice([*WORDS, *VALUES])}
            return json.dumps(said | {dice.choice(["n", "cols", "offset", "after"]): dice.choice(VALUES)})


async def pour(ws: ClientConnection, messages: list[str]) -> None:
    """Says it all: alone a short one is taken where it arrives, many at once stand in line."""
    dice = random.Random(len(messages))
    while messages:
        some = messages[: dice.choice([1, 1, AT_ONCE])]
        del messages[: len(some)]
        await asyncio.gather(*(ws.send(each) for each in some))


async def errors(ws: ClientConnection, mark: str) -> int:
    """How many are told before the word about our last message."""
    count = 0
    while True:
        told = await ws.recv()
        if isinstance(told, bytes) or (answer := json.loads(told))["type"] != "error":
            continue
        count += 1
        if answer.get("id") == mark or mark in answer["message"]:
            return count


@pytest.mark.parametrize("path", ["/ws/session/{session}", "/ws/session/{session}/worker/{worker}"])
async def test_thousands_of_senseless_messages_get_an_error_each(server: Server, path: str) -> None:
    session = await server.new_session()
    worker = await server.new_terminal(session["id"])
    where = path.format(session=session["id"], worker=worker["id"])
    dice = random.Random(path)
    senseless = [each for each in (message(dice) for _ in range(MESSAGES)) if not _makes_sense(each)]
    viewer = TerminalViewer(server, session["id"], worker["id"])
    async with viewer.watching(), server.socket(where) as ws:
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(errors(ws, "the-last"))
            await pour(ws, [*senseless, '{"type":"the-last","id":"the-last"}'])
        assert reading.result() == len(senseless) + 1
        await TerminalWriter(server, session["id"], worker["id"], "somebody").type("echo st''ill here\n")
        await viewer.until_seen(b"still here")


async def test_whoever_breaks_the_protocol_is_let_go_and_nobody_else(server: Server) -> None:
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
        await TerminalWriter(server, session["id"], worker["id"], "somebody").type("echo st''ill here\n")
        await viewer.until_seen(b"still here")


def _makes_sense(text: str) -> bool:
    """A few among them do, to one of the sockets."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and (said.get("type") == "subscribe" or said.get("offset") == 1 << 70)
