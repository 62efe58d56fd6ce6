"""An agent sends thousands of invalid lines: it continues or fails, and nothing else is affected."""

import json
import os
import random
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from support.retrying_client import RetryingClient, define_scripted
from support.server import Server

LINES = 10_000 if os.environ.get("BULLPEN_FAULTS") == "full" else 2_000

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

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
updates = st.fixed_dictionaries(
    {"sessionUpdate": st.sampled_from(KINDS) | values},
    optional=dict.fromkeys(("content", "toolCallId", "entries", "used", "size", "configOptions"), values),
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0"),
        "id": values,
        "method": st.sampled_from(METHODS) | values,
        "params": st.fixed_dictionaries({"update": updates}) | values,
        "result": values,
        "error": values,
    },
)
lines = st.one_of(
    messages.map(lambda message: json.dumps(message).encode("utf-8", "replace")),
    values.map(lambda value: json.dumps(value).encode("utf-8", "replace")),
    st.binary(max_size=60),
    st.just(b'{"method":"session/update","params":{"update":{"sessionUpdate":"plan","entries":"\\ud800"}}}'),
    st.just(b"[" * 5000),
    st.just(b'{"id":1e400,"method":"x"}'),
)


def invalid_lines(count: int) -> list[bytes]:
    collected: list[bytes] = []

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(line=lines)
    def collect(line: bytes) -> None:
        collected.append(line.replace(b"\n", b" "))

    collect()
    random.shuffle(collected)
    return collected[:count]


async def test_an_agent_that_sends_invalid_lines_affects_no_other_session(
    server: Server, workspace: Path
) -> None:
    steps = [{"do": "bytes", "text": (line + b"\n").hex()} for line in invalid_lines(LINES)]
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
