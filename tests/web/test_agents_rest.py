"""Sessions with agents over REST: prompts, permissions, questions, cancellation, restarts and scopes."""

import asyncio
import json
import uuid
from pathlib import Path

import pytest

from support.pictures import png
from support.scripted_agent.journal import prompts_in
from support.server import Server
from support.session_client import SessionClient, define_scripted


@pytest.fixture
async def journal(server: Server) -> Path:
    """Define the scripted agent and return the path of its journal."""
    return await define_scripted(server)


@pytest.fixture
async def conversation(server: Server, journal: Path) -> SessionClient:
    return await SessionClient.begin(server)


# Creating and prompting


async def test_a_session_with_an_agent_has_its_worker_at_once(server: Server, journal: Path) -> None:
    session = await server.new_session(agentId="scripted")
    (worker,) = session["workers"]
    assert (worker["type"], worker["agentId"], worker["state"]) == ("agent", "scripted", "spawning")
    ready = await server.worker_in(session["id"], worker["id"], "active")
    assert ready["pid"]


async def test_an_unknown_agent_id_is_invalid(server: Server) -> None:
    body = {"locationPath": str(server.workspace), "agentId": "unknown"}
    assert (await server.call("POST", "/api/sessions", 400, json=body))["error"] == "invalid"
    assert (await server.call("GET", "/api/sessions"))["total"] == 0


async def test_a_prompt_is_accepted_at_once_and_answered_in_events(conversation: SessionClient) -> None:
    prompted = await conversation.prompt("[[chunk hello]]")
    assert set(prompted) == {"promptId", "seq", "queued"}
    assert prompted["queued"] is False
    event = await conversation.wait_for_event("user_prompt", promptId=prompted["promptId"])
    assert (event["seq"], event["data"]["text"]) == (prompted["seq"], "[[chunk hello]]")
    end = await conversation.wait_for_event("turn_end")
    assert end["data"]["stopReason"] == "end_turn"
    assert await conversation.agent_text() == "hello"


async def test_the_first_prompt_of_a_session_without_an_agent_starts_one(server: Server) -> None:
    conversation = SessionClient(server, await server.new_session())
    prompted = await conversation.prompt("help")
    assert prompted["queued"] is True
    assert (await conversation.wait_for_event("turn_end"))["data"]["stopReason"] == "end_turn"
    assert (await conversation.worker())["agentId"] == "demo"
    assert "demo agent" in await conversation.agent_text()


async def test_a_prompt_sent_five_times_with_one_id_is_one_prompt(
    conversation: SessionClient, journal: Path
) -> None:
    prompt_id = str(uuid.uuid4())
    answers = await asyncio.gather(
        *(conversation.prompt("[[chunk x]]", promptId=prompt_id) for _ in range(5))
    )
    assert len({json.dumps(answer) for answer in answers}) == 1
    await conversation.wait_for_event("turn_end")
    assert (await conversation.prompt("other", expect=409, promptId=prompt_id))["error"] == "conflict"
    assert await conversation.agent_text() == "x"
    assert prompts_in(journal) == ["[[chunk x]]"]


async def test_a_prompt_without_an_id_is_identified_by_its_idempotency_key(
    conversation: SessionClient,
) -> None:
    headers = {"Idempotency-Key": "k1"}
    path = f"{conversation.path}/prompt"
    first = await conversation.server.call("POST", path, 202, json={"text": "[[chunk x]]"}, headers=headers)
    again = await conversation.server.call("POST", path, 202, json={"text": "[[chunk x]]"}, headers=headers)
    assert again == first
    await conversation.server.call("POST", path, 409, json={"text": "other"}, headers=headers)


@pytest.mark.parametrize("body", [{"text": ""}, {"text": " \n"}, {}])
async def test_an_empty_prompt_is_refused(conversation: SessionClient, body: dict[str, str]) -> None:
    answer = await conversation.server.call("POST", f"{conversation.path}/prompt", 400, json=body)
    assert answer["error"] == "empty_message"


async def test_a_prompt_names_its_agent_by_role_or_id(conversation: SessionClient) -> None:
    second = await conversation.server.call(
        "POST",
        f"{conversation.path}/workers",
        201,
        json={"type": "agent", "agentId": "scripted", "role": "second"},
    )
    await conversation.server.worker_in(conversation.id, second["id"], "active")
    await conversation.prompt("[[chunk to-second]]", role="second")
    event = await conversation.wait_for_event("user_prompt", text="[[chunk to-second]]")
    assert event["workerId"] == second["id"]
    assert (await conversation.prompt("x", expect=404, role="unknown"))["error"] == "not_found"
    assert (await conversation.prompt("x", expect=404, workerId="unknown"))["error"] == "not_found"


async def test_an_image_is_sent_to_the_agent_with_its_prompt(
    conversation: SessionClient, journal: Path
) -> None:
    image = await conversation.server.call("POST", f"{conversation.path}/images", 201, content=png())
    await conversation.run_turn("[[chunk seen]]", imageIds=[image["id"]])
    assert "image/png" in journal.read_text()
    missing = await conversation.prompt("x", expect=404, imageIds=["nothing"])
    assert missing["error"] == "not_found"


# Permissions and questions


async def test_a_permission_waits_and_the_first_answer_wins(conversation: SessionClient) -> None:
    await conversation.prompt("[[permission]] [[chunk done]]")
    permission = await conversation.open_permission()
    assert {"id", "workerId", "role", "toolCall", "options", "createdAt"} <= set(permission)
    assert {option["kind"] for option in permission["options"]} >= {"allow_once", "reject_once"}
    path = f"{conversation.path}/permissions/{permission['id']}"
    assert (await conversation.server.call("POST", path, 400, json={"optionId": "maybe"}))[
        "error"
    ] == "invalid"
    answers = await asyncio.gather(
        *(conversation.server.http.post(path, json={"optionId": option}) for option in ("yes", "no"))
    )
    assert sorted(answer.status_code for answer in answers) == [204, 409]
    await conversation.wait_for_event("turn_end")
    assert (await conversation.server.call("GET", f"{conversation.path}/permissions"))["permissions"] == []
    unknown = f"{conversation.path}/permissions/unknown"
    assert (await conversation.server.call("POST", unknown, 404, json={"optionId": "yes"}))[
        "error"
    ] == "not_found"


async def test_an_answer_repeated_with_its_idempotency_key_is_accepted(conversation: SessionClient) -> None:
    await conversation.prompt("[[permission]]")
    path = f"{conversation.path}/permissions/{(await conversation.open_permission())['id']}"
    for _ in range(2):
        headers = {"Idempotency-Key": "yes"}
        await conversation.server.call("POST", path, 204, json={"optionId": "yes"}, headers=headers)


async def test_an_open_permission_outlives_the_server(conversation: SessionClient) -> None:
    await conversation.prompt("[[permission]] [[chunk done]]")
    before = await conversation.open_permission()
    await conversation.server.restart()
    assert await conversation.open_permission() == before
    path = f"{conversation.path}/permissions/{before['id']}"
    await conversation.server.call("POST", path, 204, json={"optionId": "yes"})
    assert (await conversation.wait_for_event("turn_end"))["data"]["stopReason"] == "end_turn"


async def test_a_question_is_answered_once(conversation: SessionClient) -> None:
    await conversation.prompt("[[question 'your name?']]")
    event = await conversation.wait_for_event("question", status="pending")
    (question,) = (await conversation.server.call("GET", f"{conversation.path}/questions"))["questions"]
    assert (question["id"], question["message"]) == (event["data"]["id"], "your name?")
    path = f"{conversation.path}/questions/{question['id']}"
    body = {"action": "accept", "content": {"name": 7}}
    refused = await conversation.server.call("POST", path, 400, json=body)
    assert (refused["error"], refused["message"]) == ("invalid", "name must be text, not 7")
    body = {"action": "accept", "content": {"name": "Ada"}}
    await conversation.server.call("POST", path, 204, json=body)
    assert (await conversation.server.call("POST", path, 409, json=body))["error"] == "conflict"
    await conversation.wait_for_event("turn_end")
    assert "Ada" in await conversation.agent_text()


# Cancel and restart


async def test_a_cancelled_turn_ends_and_the_session_continues(conversation: SessionClient) -> None:
    await conversation.prompt("[[permission]] [[wait_cancel]]")
    await conversation.open_permission()
    await conversation.server.call("POST", f"{conversation.path}/cancel", 204)
    assert (await conversation.wait_for_event("turn_end"))["data"]["stopReason"] == "cancelled"
    assert (await conversation.wait_for_event("permission", status="cancelled"))["data"]["id"]
    assert (await conversation.server.call("GET", conversation.path))["status"] == "active"
    end = await conversation.run_turn("[[chunk on]]")
    assert end["data"]["stopReason"] == "end_turn"


async def test_cancelling_without_a_turn_is_accepted(conversation: SessionClient) -> None:
    await conversation.server.call("POST", f"{conversation.path}/cancel", 204)


async def test_a_crashed_agent_is_restarted_with_its_conversation(conversation: SessionClient) -> None:
    await conversation.run_turn("[[chunk before]]")
    await conversation.prompt("[[crash]]")
    await conversation.wait_for_event("worker_failed")
    worker = await conversation.server.call(
        "POST", f"{conversation.path}/restart", 200, json={"continueConversation": True}
    )
    assert (worker["run"], worker["state"]) == (2, "spawning")
    ready = await conversation.server.worker_in(conversation.id, worker["id"], "active")
    end = await conversation.run_turn("[[chunk after]]")
    assert (ready["run"], end["data"]["stopReason"]) == (2, "end_turn")
    sessions = [each["data"] for each in await conversation.events() if each["type"] == "agent_session"]
    assert sessions[0]["acpSessionId"] == sessions[1]["acpSessionId"]


async def test_a_running_agent_is_restarted_without_its_conversation_on_request(
    conversation: SessionClient,
) -> None:
    before = await conversation.worker()
    body = {"continueConversation": False}
    worker = await conversation.server.call("POST", f"{conversation.path}/restart", 200, json=body)
    assert (worker["id"], worker["run"]) == (before["id"], 2)
    ready = await conversation.server.worker_in(conversation.id, worker["id"], "active")
    assert ready["pid"] != before["pid"]
    await conversation.wait_for_event("conversation_reset")
    empty = await conversation.server.new_session()
    await conversation.server.call("POST", f"/api/sessions/{empty['id']}/restart", 404)


# Scopes


async def test_view_does_not_allow_prompts_and_operate_does_not_allow_agent_definitions(
    conversation: SessionClient,
) -> None:
    await conversation.prompt("[[permission]]")
    permission = await conversation.open_permission()

    async def status(scope: str, method: str, path: str, body: object) -> int:
        token = await conversation.server.call(
            "POST", "/api/tokens", 201, json={"name": scope, "scope": scope}
        )
        headers = {"Authorization": f"Bearer {token['token']}"}
        return (await conversation.server.http.request(method, path, json=body, headers=headers)).status_code

    answer = f"{conversation.path}/permissions/{permission['id']}"
    assert await status("view", "GET", f"{conversation.path}/permissions", None) == 200
    assert await status("view", "POST", f"{conversation.path}/prompt", {"text": "x"}) == 403
    assert await status("view", "POST", answer, {"optionId": "yes"}) == 403
    assert await status("view", "POST", f"{conversation.path}/queue", {"message": "x"}) == 403
    definition = {"name": "x", "kind": "acp", "command": ["x"]}
    assert await status("operate", "PUT", "/api/agents/x", definition) == 403
    assert await status("operate", "POST", answer, {"optionId": "yes"}) == 204


async def test_an_agent_that_never_answers_is_failed_with_its_stderr(server: Server) -> None:
    server.set(BULLPEN_AGENT_START_TIMEOUT="1")
    await server.restart()
    command = ["sh", "-c", "echo no network >&2; exec sleep 1000"]
    body = {"name": "Silent", "kind": "acp", "command": command}
    await server.call("PUT", "/api/agents/silent", 200, json=body)
    session = await server.new_session(agentId="silent")
    worker = await server.worker_in(session["id"], session["workers"][0]["id"], "failed")
    assert worker["error"] == "it did not answer within 1 s: no network"
