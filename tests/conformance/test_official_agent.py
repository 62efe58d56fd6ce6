"""A real server runs an agent of the official ACP package."""

import sys
from pathlib import Path

import pytest

from support.server import Server
from support.talk import Talk

PROGRAM = Path(__file__).parents[1] / "agents" / "official.py"


@pytest.fixture
async def talk(server: Server) -> Talk:
    definition = {"name": "Official", "kind": "acp", "command": [sys.executable, str(PROGRAM)]}
    await server.call("PUT", "/api/agents/official", 200, json=definition)
    return await Talk.begin(server, "official")


async def test_an_agent_of_the_official_package_works_and_loads_its_session(talk: Talk) -> None:
    server = talk.server
    assert (await talk.ask("say hello"))["data"]["stopReason"] == "end_turn"
    assert await talk.said() == "hello"

    await talk.ask("edit notes")
    assert (server.workspace / "notes").read_text() == "new\n"
    assert (await talk.said()).endswith(r"'new\n' 0 'new\n'")
    assert await talk.tools() == ["completed"]

    prompted = await talk.prompt("ask")
    path = f"{talk.path}/permissions/{(await talk.permission())['id']}"
    await server.call("POST", path, 204, json={"optionId": "allow"})
    await talk.seen("turn_end", after=prompted["seq"], stopReason="end_turn")
    assert (await talk.said()).endswith("you chose allow")

    prompted = await talk.prompt("ask")
    await talk.permission()
    await server.call("POST", f"{talk.path}/cancel", 204)
    await talk.seen("turn_end", after=prompted["seq"], stopReason="cancelled")

    prompted = await talk.prompt("wait")
    await talk.seen("agent_message", after=prompted["seq"], text="waiting")
    await server.call("POST", f"{talk.path}/cancel", 204)
    await talk.seen("turn_end", after=prompted["seq"], stopReason="cancelled")

    before = await talk.said()
    await server.restart()
    await talk.ask("count")  # the same process, adopted by the next server
    await server.call("POST", f"{talk.path}/restart", 200, json={"continueConversation": True})
    await talk.ask("count")  # another process, which loaded the session
    text = (await talk.said()).removeprefix(before)
    assert text == "this is prompt 6this is prompt 7"
    assert not [event for event in await talk.events() if event["type"] in ("diagnostic", "unknown_update")]
