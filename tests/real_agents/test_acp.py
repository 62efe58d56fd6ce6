"""gemini-cli, opencode and codex-acp from npm, against the stub model."""

from pathlib import Path

import pytest

from real_agents.conversation import RealAgentConversation
from real_agents.installed import AGENTS
from support.server import Server
from support.stub_model import Hold, Say, Shell, StubModel, Write

pytestmark = [pytest.mark.real_agents, pytest.mark.parametrize("agent", AGENTS)]

STORY = "one two three four five six seven eight nine ten"


async def test_text(server: Server, model: StubModel, agent: str) -> None:
    model.answers("Tell me a story", (Say(STORY),))
    talk = await RealAgentConversation.begin(server, agent)
    end = await talk.ask("Tell me a story")
    assert end["data"]["stopReason"] == "end_turn"
    assert await talk.words() == STORY.split()
    assert len(model.asked("Tell me a story")) == 1


async def test_write_with_permission(server: Server, model: StubModel, workspace: Path, agent: str) -> None:
    file = workspace / "note.txt"
    model.answers("Write a note", (Say("I write."), Write(str(file), "a note\n")), (Say("Written."),))
    talk = await RealAgentConversation.begin(server, agent)
    await talk.prompt("Write a note")
    await talk.permission()
    assert not file.exists()
    await talk.decide("allow_once")
    end = await talk.seen("turn_end")
    assert end["data"]["stopReason"] == "end_turn"
    assert file.read_text().strip() == "a note"
    assert await talk.words() == ["I", "write.", "Written."]
    assert await talk.tools() == ["completed"]


async def test_reject(server: Server, model: StubModel, workspace: Path, agent: str) -> None:
    file = workspace / "note.txt"
    model.answers("Write a note", (Write(str(file), "a note\n"),), (Say("So be it."),))
    model.answers("Never mind", (Say("Fine."),))
    talk = await RealAgentConversation.begin(server, agent)
    await talk.prompt("Write a note")
    await talk.decide("reject_once", "reject_always")
    end = await talk.seen("turn_end")
    assert end["data"]["stopReason"] in ("end_turn", "cancelled")
    again = await talk.ask("Never mind")
    assert again["data"]["stopReason"] == "end_turn"
    assert (await talk.words())[-1] == "Fine."
    assert not file.exists()


async def test_shell(server: Server, model: StubModel, workspace: Path, agent: str) -> None:
    model.answers("Count", (Shell("expr 1200 + 34 | tee sum.txt"),), (Say("Counted."),))
    talk = await RealAgentConversation.begin(server, agent)
    await talk.prompt("Count")
    await talk.permission()
    assert not (workspace / "sum.txt").exists()
    await talk.decide("allow_once")
    end = await talk.seen("turn_end")
    assert end["data"]["stopReason"] == "end_turn"
    assert (workspace / "sum.txt").read_text() == "1234\n"
    _, after = model.asked("Count")
    assert "1234" in after.results[0].text
    assert await talk.tools() == ["completed"]


async def test_cancel_in_mid_stream(server: Server, model: StubModel, agent: str) -> None:
    hold = Hold()
    model.answers("Tell me a story", (Say("once upon"), hold, Say("a time")))
    model.answers("Another one", (Say("No more."),))
    talk = await RealAgentConversation.begin(server, agent)
    await talk.prompt("Tell me a story")
    await talk.seen("agent_message")
    await server.call("POST", f"{talk.path}/cancel")
    end = await talk.seen("turn_end")
    assert end["data"]["stopReason"] == "cancelled"
    hold.released.set()  # codex closes its connection only after it has received more
    await model.until(lambda: model.asked("Tell me a story")[0].outcome)
    assert (await talk.ask("Another one"))["data"]["stopReason"] == "end_turn"
    assert "time" not in await talk.words()
    assert (await talk.words())[-2:] == ["No", "more."]


async def test_restart_with_continue(server: Server, model: StubModel, agent: str) -> None:
    model.answers("My name is Ann", (Say("Hello Ann."),))
    model.answers("Who am I?", (Say("You know."),))
    talk = await RealAgentConversation.begin(server, agent)
    await talk.ask("My name is Ann")
    before = await talk.worker()
    await talk.restart()
    await talk.ask("Who am I?")
    assert (await talk.worker())["pid"] != before["pid"]
    (asked,) = model.asked("Who am I?")
    assert asked.count("My name is Ann") == 1
    assert asked.count("Hello Ann.") == 1


async def test_kill_in_mid_turn(server: Server, model: StubModel, workspace: Path, agent: str) -> None:
    hold, file = Hold(), workspace / "note.txt"
    first_answer = (Say("one two"), hold, Say("three four"), Write(str(file), "a note\n"))
    model.answers("Count and write", first_answer, (Say("five six"),))
    model.answers("Go on", (Say("seven"),))
    talk = await RealAgentConversation.begin(server, agent)
    pid = (await talk.worker())["pid"]
    await talk.prompt("Count and write")
    await talk.seen("agent_message")
    await server.kill()
    hold.released.set()
    await model.until(lambda: model.asked("Count and write")[0].outcome == "finished")
    await server.start()
    await talk.permission()
    await server.restart()
    await talk.decide("allow_once")
    end = await talk.seen("turn_end")
    assert end["data"]["stopReason"] == "end_turn"
    assert file.read_text().strip() == "a note"
    await talk.ask("Go on")
    assert await talk.words() == ["one", "two", "three", "four", "five", "six", "seven"]
    assert [len(each.results) for each in model.asked("Count and write")] == [0, 1]
    assert model.asked("Go on")[0].count("Count and write") == 1
    assert (await talk.worker())["pid"] == pid
