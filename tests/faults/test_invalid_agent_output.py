"""An agent sends thousands of invalid lines: it continues or fails, and nothing else is affected."""

import json
import math
import os
import random
from pathlib import Path
from typing import Any

from support.retrying_client import RetryingClient, define_scripted
from support.server import Server

FULL = os.environ.get("BULLPEN_FAULTS") == "full"
LINES = 10_000 if FULL else 2_000
SEED = random.randrange(1 << 32) if FULL else 1

METHODS = [
    "session/update",
    "session/request_permission",
    "fs/read_text_file",
    "fs/write_text_file",
    "terminal/output",
    "terminal/wait_for_exit",
    "elicitation/create",
    "$/cancel_request",
    "session/prompt",
    "",
]
KINDS = [
    "agent_message_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "usage_update",
    "config_option_update",
]

FIELDS = ["content", "toolCallId", "entries", "used", "size", "configOptions"]
NUMBERS = [0, -1, 2**31, 2**63, 2**64, -(10**30), 1.5, -0.0, 5e-324, 1e308, math.nan, math.inf, -math.inf]
CHOSEN_LINES = [
    b'{"method":"session/update","params":{"update":{"sessionUpdate":"plan","entries":"\\ud800"}}}',
    b"[" * 5000,
    b'{"id":1e400,"method":"x"}',
]


class InvalidLines:
    """A generator of random lines: messages of the protocol with wrong parts, other JSON, and other bytes.

    It does not use hypothesis, which needs a millisecond and more for each line.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def line(self) -> bytes:
        match self._random.randrange(5):
            case 0 | 1:
                return json.dumps(self._message()).encode()
            case 2:
                return json.dumps({"method": "session/update", "params": {"update": self._update()}}).encode()
            case 3:
                return json.dumps(self._value()).encode()
            case _:
                return self._random.randbytes(self._random.randrange(61)).replace(b"\n", b" ")

    def _message(self) -> Any:
        parts = {
            "jsonrpc": "2.0",
            "id": self._value(),
            "method": self._one_of(METHODS),
            "params": self._random.choice([{"update": self._update()}, self._value()]),
            "result": self._value(),
            "error": self._value(),
        }
        return self._some_of(parts)

    def _update(self) -> Any:
        return {"sessionUpdate": self._one_of(KINDS)} | self._some_of(
            {name: self._value() for name in FIELDS}
        )

    def _one_of(self, valid: list[str]) -> Any:
        return self._random.choice([self._random.choice(valid), self._value()])

    def _some_of(self, parts: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in parts.items() if self._random.random() < 0.5}

    def _value(self, depth: int = 3) -> Any:
        """Return any JSON value; strings may have lone surrogates and control characters."""
        match self._random.randrange(7 if depth else 5):
            case 0:
                return self._random.choice([None, True, False])
            case 1:
                return self._random.choice(NUMBERS)
            case 2:
                return self._random.randint(-(2**70), 2**70)
            case 3 | 4:
                return self._text()
            case 5:
                return [self._value(depth - 1) for _ in range(self._random.randrange(4))]
            case _:
                return {self._text(): self._value(depth - 1) for _ in range(self._random.randrange(4))}

    def _text(self) -> str:
        highest = self._random.choice([0x80, 0x110000])
        return "".join(chr(self._random.randrange(highest)) for _ in range(self._random.randrange(21)))


async def test_an_agent_that_sends_invalid_lines_affects_no_other_session(
    server: Server, workspace: Path
) -> None:
    invalid = InvalidLines(SEED)
    lines = [invalid.line() for _ in range(LINES)] + CHOSEN_LINES
    steps = [{"do": "bytes", "text": (line + b"\n").hex()} for line in lines]
    define_scripted(workspace, {"prompts": [[*steps, {"do": "chunk", "text": "the end"}]]}, "broken")
    define_scripted(workspace)
    broken, healthy = await RetryingClient.begin(server, "broken"), await RetryingClient.begin(server)
    async with broken.following(), healthy.following():
        await broken.prompt("go")
        for number in range(5):
            await healthy.prompt(f"[[chunk {number}]]")
            await healthy.until_turns(number + 1)
        await broken.until(
            lambda _: broken.events_of_type("turn_end") or broken.events_of_type("worker_failed")
        )
        log = await broken.stored_events()
        assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
        assert (await broken.get())["status"] == "active"
    assert healthy.agent_text() == "01234"
    assert (await server.call("GET", "/api/health"))["status"] == "ok"
    assert "internal error" not in server.output()
