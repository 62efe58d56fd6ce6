"""A new user tries sessions with the demo agent, without an installed agent."""

from pathlib import Path

from support.retrying_client import RetryingClient
from support.server import Server


async def begin_demo(server: Server) -> RetryingClient:
    return await RetryingClient.begin(server, "demo")


async def test_the_demo_agent_plans_edits_asks_and_runs(server: Server, workspace: Path) -> None:
    agent_client = await begin_demo(server)
    async with agent_client.following():
        await agent_client.prompt("plan, edit notes.md and run echo hello")
        for _ in range(2):
            await agent_client.until(lambda _: agent_client.open_permissions())
            (permission,) = agent_client.open_permissions()
            assert await agent_client.answer(permission, "once") == 204
            await agent_client.until_answered(permission)
        await agent_client.until_turns(1)
    assert agent_client.events_of_type("turn_end")[0]["data"] == {"stopReason": "end_turn"}
    assert "demo agent was here" in (workspace / "notes.md").read_text()
    assert agent_client.events_of_type("plan")
    assert "`echo hello` ended with exit code 0" in agent_client.agent_text()
    terminal = next(
        each for each in (await agent_client.get("/workers"))["workers"] if each["type"] == "terminal"
    )
    assert terminal["exitCode"] == 0
    output = await server.http.get(f"{agent_client.path}/workers/{terminal['id']}/output")
    assert output.content == b"hello\r\n"


async def test_a_refusal_a_failure_and_a_crash_have_different_stop_reasons(server: Server) -> None:
    agent_client = await begin_demo(server)
    async with agent_client.following():
        await agent_client.prompt("refuse")
        await agent_client.until_turns(1)
        await agent_client.prompt("fail")
        await agent_client.until_turns(2)
        await agent_client.prompt("crash")
        await agent_client.until(lambda _: agent_client.events_of_type("worker_failed"))
        ends = [event["data"]["stopReason"] for event in agent_client.events_of_type("turn_end")]
        assert ends == ["refusal", "error", "error"]
        (failed,) = agent_client.events_of_type("worker_failed")
        assert failed["data"]["exitCode"] == 3
        assert (await agent_client.get())["status"] == "active"
        restarted = await server.call(
            "POST", f"{agent_client.path}/restart", json={"continueConversation": True}
        )
        assert restarted["run"] == 2
        await agent_client.until(lambda _: len(agent_client.events_of_type("worker_ready")) == 2)
        await agent_client.prompt("hello again")
        await agent_client.until_turns(4)
    assert "You said: hello again" in agent_client.agent_text()
    assert [event["data"]["how"] for event in agent_client.events_of_type("agent_session")] == [
        "new",
        "resume",
    ]


async def test_a_session_without_an_agent_gets_one_with_its_first_prompt(
    server: Server, workspace: Path
) -> None:
    session = await server.new_session()
    agent_client = RetryingClient(server, session["id"])
    async with agent_client.following():
        answer = await agent_client.prompt("help")
        assert answer["queued"]
        await agent_client.until_turns(1)
    (worker,) = (await agent_client.get("/workers"))["workers"]
    assert (worker["type"], worker["state"], worker["activity"]) == ("agent", "active", "idle")
    messages = (await agent_client.get("/messages"))["messages"]
    assert [message["role"] for message in messages][:2] == ["user", "agent"]


async def test_ending_a_session_cancels_its_turn_and_keeps_its_history(server: Server) -> None:
    agent_client = await begin_demo(server)
    async with agent_client.following():
        await agent_client.prompt("slow")
        await agent_client.until(lambda _: agent_client.events_of_type("agent_message"))
        ended = await server.call("DELETE", agent_client.path, 200)
        assert ended["status"] == "cancelled"
        await agent_client.until_turns(1)
    assert agent_client.events_of_type("turn_end")[0]["data"]["stopReason"] == "cancelled"
    answer = await server.http.post(f"{agent_client.path}/prompt", json={"text": "more"})
    assert answer.status_code == 409
    assert "cancelled" in answer.json()["message"]
    pid = agent_client.events_of_type("worker_ready")[0]["data"]["pid"]
    assert not Path(f"/proc/{pid}").exists()
