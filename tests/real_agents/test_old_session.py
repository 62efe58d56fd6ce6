"""gemini-cli can load a session only when it is at least a minute old, and then repeats its history late."""

import asyncio

import pytest

from bullpen.agents.definitions import builtin
from real_agents.conversation import RealAgentConversation
from support.server import Server
from support.stub_model import StubModel, Text

pytestmark = [pytest.mark.real_agents, pytest.mark.parametrize("agent", ["gemini"])]


async def test_restart_after_a_minute(server: Server, model: StubModel, agent: str) -> None:
    model.set_answers("My name is Ann", (Text("Hello Ann."),))
    model.set_answers("Who am I?", (Text("You know."),))
    talk = await RealAgentConversation.begin(server, agent)
    end = asyncio.get_running_loop().time() + builtin()[agent].quirks.load_after
    await talk.run_turn("My name is Ann")
    await asyncio.sleep(end - asyncio.get_running_loop().time())
    assert await talk.restart() == "load"
    await talk.run_turn("Who am I?")
    (asked,) = model.requests_for("Who am I?")
    assert (asked.count("My name is Ann"), asked.count("Hello Ann.")) == (1, 1)
    assert await talk.words() == ["Hello", "Ann.", "You", "know."]
