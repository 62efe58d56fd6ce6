"""A person's first minutes: no agent is installed, and yet everything can be tried."""

from pathlib import Path

from support.retrying_client import RetryingClient
from support.server import Server


async def demo(server: Server) -> RetryingClient:
    return await RetryingClient.begin(server, "demo")


async def test_b10_the_demo_agent_plans_edits_asks_and_runs(server: Server, workspace: Path) -> None:
    talker = await demo(server)
    async with talker.following():
        await talker.prompt("plan, edit notes.md and run echo hello")
        for _ in range(2):
            await talker.until(lambda _: talker.open_permissions())
            (permission,) = talker.open_permissions()
            assert await talker.answer(permission, "once") == 204
            await talker.until_answered(permission)
        await talker.until_turns(1)
    assert talker.events_of_type("turn_end")[0]["data"] == {"stopReason": "end_turn"}
    assert "demo agent was here" in (workspace / "notes.md").read_text()
    assert talker.events_of_type("plan")
    assert "`echo hello` ended with exit code 0" in talker.agent_text()
    terminal = next(each for each in (await talker.get("/workers"))["workers"] if each["type"] == "terminal")
    assert terminal["exitCode"] == 0
    output = await server.http.get(f"{talker.path}/workers/{terminal['id']}/output")
    assert output.content == b"hello\r\n"


async def test_a_refusal_a_failure_and_a_crash_are_told_apart(server: Server) -> None:
    talker = await demo(server)
    async with talker.following():
        await talker.prompt("refuse")
        await talker.until_turns(1)
        await talker.prompt("fail")
        await talker.until_turns(2)
        await talker.prompt("crash")
        await talker.until(lambda _: talker.events_of_type("worker_failed"))
        ends = [event["data"]["stopReason"] for event in talker.events_of_type("turn_end")]
        assert ends == ["refusal", "error", "error"]
        (failed,) = talker.events_of_type("worker_failed")
        assert failed["data"]["exitCode"] == 3
        assert (await talker.get())["status"] == "active"
        restarted = await server.call("POST", f"{talker.path}/restart", json={"continueConversation": True})
        assert restarted["run"] == 2
        await talker.until(lambda _: len(talker.events_of_type("worker_ready")) == 2)
        await talker.prompt("hello again")
        await talker.until_turns(4)
    assert "You said: hello again" in talker.agent_text()
    assert [event["data"]["how"] for event in talker.events_of_type("agent_session")] == ["new", "resume"]


async def test_a_session_without_an_agent_gets_one_with_its_first_prompt(
    server: Server, workspace: Path
) -> None:
    session = await server.new_session()
    talker = RetryingClient(server, session["id"])
    async with talker.following():
        answer = await talker.prompt("help")
        assert answer["queued"]
        await talker.until_turns(1)
    (worker,) = (await talker.get("/workers"))["workers"]
    assert (worker["type"], worker["state"], worker["activity"]) == ("agent", "active", "idle")
    messages = (await talker.get("/messages"))["messages"]
    assert [message["role"] for message in messages][:2] == ["user", "agent"]


async def test_ending_a_session_cancels_its_turn_and_keeps_its_history(server: Server) -> None:
    talker = await demo(server)
    async with talker.following():
        await talker.prompt("slow")
        await talker.until(lambda _: talker.events_of_type("agent_message"))
        ended = await server.call("DELETE", talker.path, 200)
        assert ended["status"] == "cancelled"
        await talker.until_turns(1)
    assert talker.events_of_type("turn_end")[0]["data"]["stopReason"] == "cancelled"
    answer = await server.http.post(f"{talker.path}/prompt", json={"text": "more"})
    assert answer.status_code == 409
    assert "cancelled" in answer.json()["message"]
    pid = talker.events_of_type("worker_ready")[0]["data"]["pid"]
    assert not Path(f"/proc/{pid}").exists()
