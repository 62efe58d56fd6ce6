"""gemini-cli, opencode and codex-acp from npm, against the stub model."""

from pathlib import Path

import pytest

from real_agents.conversation import RealAgentConversation
from real_agents.installed import AGENTS
from support.server import Server
from support.stub_model import Pause, ShellTool, StubModel, Text, WriteTool

pytestmark = [pytest.mark.real_agents, pytest.mark.parametrize("agent", AGENTS)]

STORY = "one two three four five six seven eight nine ten"


async def test_text(server: Server, model: StubModel, agent: str) -> None:
    model.set_answers("Tell me a story", (Text(STORY),))
    talk = await RealAgentConversation.begin(server, agent)
    end = await talk.run_turn("Tell me a story")
    assert end["data"]["stopReason"] == "end_turn"
    assert await talk.words() == STORY.split()
    assert len(model.requests_for("Tell me a story")) == 1


async def test_write_with_permission(server: Server, model: StubModel, workspace: Path, agent: str) -> None:
    file = workspace / "note.txt"
    model.set_answers(
        "Write a note", (Text("I write."), WriteTool(str(file), "a note\n")), (Text("Written."),)
    )
    talk = await RealAgentConversation.begin(server, agent)
    await talk.prompt("Write a note")
    await talk.open_permission()
    assert not file.exists()
    await talk.decide("allow_once")
    end = await talk.wait_for_event("turn_end")
    assert end["data"]["stopReason"] == "end_turn"
    assert file.read_text().strip() == "a note"
    assert await talk.words() == ["I", "write.", "Written."]
    assert await talk.tool_statuses() == ["completed"]


async def test_reject(server: Server, model: StubModel, workspace: Path, agent: str) -> None:
    file = workspace / "note.txt"
    model.set_answers("Write a note", (WriteTool(str(file), "a note\n"),), (Text("So be it."),))
    model.set_answers("Never mind", (Text("Fine."),))
    talk = await RealAgentConversation.begin(server, agent)
    await talk.prompt("Write a note")
    await talk.decide("reject_once", "reject_always")
    end = await talk.wait_for_event("turn_end")
    assert end["data"]["stopReason"] in ("end_turn", "cancelled")
    again = await talk.run_turn("Never mind")
    assert again["data"]["stopReason"] == "end_turn"
    assert (await talk.words())[-1] == "Fine."
    assert not file.exists()


async def test_shell(server: Server, model: StubModel, workspace: Path, agent: str) -> None:
    model.set_answers("Count", (ShellTool("expr 1200 + 34 | tee sum.txt"),), (Text("Counted."),))
    talk = await RealAgentConversation.begin(server, agent)
    await talk.prompt("Count")
    await talk.open_permission()
    assert not (workspace / "sum.txt").exists()
    await talk.decide("allow_once")
    end = await talk.wait_for_event("turn_end")
    assert end["data"]["stopReason"] == "end_turn"
    assert (workspace / "sum.txt").read_text() == "1234\n"
    _, after = model.requests_for("Count")
    assert "1234" in after.results[0].text
    assert await talk.tool_statuses() == ["completed"]


async def test_cancel_in_mid_stream(server: Server, model: StubModel, agent: str) -> None:
    hold = Pause()
    model.set_answers("Tell me a story", (Text("once upon"), hold, Text("a time")))
    model.set_answers("Another one", (Text("No more."),))
    talk = await RealAgentConversation.begin(server, agent)
    await talk.prompt("Tell me a story")
    await talk.wait_for_event("agent_message")
    await server.call("POST", f"{talk.path}/cancel")
    end = await talk.wait_for_event("turn_end")
    assert end["data"]["stopReason"] == "cancelled"
    hold.released.set()  # codex closes its connection only after it has received more
    await model.until(lambda: model.requests_for("Tell me a story")[0].outcome)
    assert (await talk.run_turn("Another one"))["data"]["stopReason"] == "end_turn"
    assert "time" not in await talk.words()
    assert (await talk.words())[-2:] == ["No", "more."]


async def test_restart_with_continue(server: Server, model: StubModel, agent: str) -> None:
    model.set_answers("My name is Ann", (Text("Hello Ann."),))
    model.set_answers("Who am I?", (Text("You know."),))
    talk = await RealAgentConversation.begin(server, agent)
    await talk.run_turn("My name is Ann")
    before = await talk.worker()
    await talk.restart()
    await talk.run_turn("Who am I?")
    assert (await talk.worker())["pid"] != before["pid"]
    (asked,) = model.requests_for("Who am I?")
    assert asked.count("My name is Ann") == 1
    assert asked.count("Hello Ann.") == 1


async def test_kill_in_mid_turn(server: Server, model: StubModel, workspace: Path, agent: str) -> None:
    hold, file = Pause(), workspace / "note.txt"
    first_answer = (Text("one two"), hold, Text("three four"), WriteTool(str(file), "a note\n"))
    model.set_answers("Count and write", first_answer, (Text("five six"),))
    model.set_answers("Go on", (Text("seven"),))
    talk = await RealAgentConversation.begin(server, agent)
    pid = (await talk.worker())["pid"]
    await talk.prompt("Count and write")
    await talk.wait_for_event("agent_message")
    await server.kill()
    hold.released.set()
    await model.until(lambda: model.requests_for("Count and write")[0].outcome == "finished")
    await server.start()
    await talk.open_permission()
    await server.restart()
    await talk.decide("allow_once")
    end = await talk.wait_for_event("turn_end")
    assert end["data"]["stopReason"] == "end_turn"
    assert file.read_text().strip() == "a note"
    await talk.run_turn("Go on")
    assert await talk.words() == ["one", "two", "three", "four", "five", "six", "seven"]
    assert [len(each.results) for each in model.requests_for("Count and write")] == [0, 1]
    assert model.requests_for("Go on")[0].count("Count and write") == 1
    assert (await talk.worker())["pid"] == pid
