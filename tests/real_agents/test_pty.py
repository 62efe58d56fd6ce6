"""gemini-cli in its own terminal: the activity on its screen agrees with the requests to the stub model."""

from pathlib import Path
from typing import ClassVar

import pytest

from support.server import Server
from support.stub_model import Pause, StubModel, Text, WriteTool
from support.tui_session_client import TuiSessionClient

pytestmark = [pytest.mark.real_agents, pytest.mark.parametrize("agent", ["gemini"])]


class RealTerminalConversation(TuiSessionClient):
    seconds: ClassVar[float] = 90.0


async def test_activity_in_a_terminal(server: Server, model: StubModel, workspace: Path, agent: str) -> None:
    begun, after = Pause(), Pause()
    written = workspace / "note.txt"
    model.set_answers(
        "Write a note", (Text("I write."), begun, WriteTool(str(written), "a note\n")), (after, Text("Done."))
    )
    session = await server.new_session(agentId=f"{agent}-tui")
    talk = RealTerminalConversation(server, session)
    assert (await talk.worker())["activity"] == "unknown"
    await talk.wait_for_activity("idle")
    prompted = await talk.prompt("Write a note")

    await begun.until_reached(talk.seconds)
    active = await talk.wait_for_activity("active", after=prompted["seq"])
    assert (await talk.worker())["activity"] == "active"
    assert model.requests_for("Write a note")[0].outcome is None

    begun.released.set()
    asking = await talk.wait_for_activity("asking", after=active["seq"])
    (first,) = model.requests_for("Write a note")
    assert first.outcome == "finished"
    assert not written.exists()

    await talk.type("\r")
    await after.until_reached(talk.seconds)
    again = await talk.wait_for_activity("active", after=asking["seq"])
    assert written.read_text().strip() == "a note"
    assert [each.outcome for each in model.requests_for("Write a note")] == ["finished", None]
    assert (await talk.worker())["activity"] == "active"

    after.released.set()
    idle = await talk.wait_for_activity("idle", after=again["seq"])
    assert [each.outcome for each in model.requests_for("Write a note")] == ["finished", "finished"]
    activities = [each for each in await talk.events(prompted["seq"]) if each["type"] == "worker_activity"]
    assert [each["data"]["activity"] for each in activities] == ["active", "asking", "active", "idle"]
    assert activities[-1] == idle
    assert (await talk.wait_for_event("turn_end"))["data"]["stopReason"] == "end_turn"
