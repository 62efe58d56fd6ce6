"""Sessions with agents over REST: prompts, permissions, questions, restarts (by number: test_seed_001.py)."""

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
    """The scripted agent is defined; this is where it keeps its journal."""
    return await define_scripted(server)


@pytest.fixture
async def talk(server: Server, journal: Path) -> SessionClient:
    return await SessionClient.begin(server)


@pytest.fixture
# Making and prompting


async def test_r30_a_session_with_an_agent_has_its_worker_at_once(server: Server, journal: Path) -> None:
    session = await server.new_session(agentId="scripted")
    (worker,) = session["workers"]
    assert (worker["type"], worker["agentId"], worker["state"]) == ("agent", "scripted", "spawning")
    ready = await server.worker_in(session["id"], worker["id"], "active")
    assert ready["pid"]


async def test_an_agent_nobody_defined_is_invalid(server: Server) -> None:
    body = {"locationPath": str(server.workspace), "agentId": "nobody"}
    assert (await server.call("POST", "/api/sessions", 400, json=body))["error"] == "invalid"
    assert (await server.call("GET", "/api/sessions"))["total"] == 0


async def test_r33_a_prompt_is_accepted_at_once_and_answered_in_events(talk: SessionClient) -> None:
    prompted = await talk.prompt("[[chunk hello]]")
    assert set(prompted) == {"promptId", "seq", "queued"}
    assert prompted["queued"] is False
    event = await talk.wait_for_event("user_prompt", promptId=prompted["promptId"])
    assert (event["seq"], event["data"]["text"]) == (prompted["seq"], "[[chunk hello]]")
    end = await talk.wait_for_event("turn_end")
    assert end["data"]["stopReason"] == "end_turn"
    assert await talk.agent_text() == "hello"


async def test_r2_the_first_prompt_of_a_session_without_an_agent_brings_one(server: Server) -> None:
    talk = SessionClient(server, await server.new_session())
    prompted = await talk.prompt("help")
    assert prompted["queued"] is True
    assert (await talk.wait_for_event("turn_end"))["data"]["stopReason"] == "end_turn"
    assert (await talk.worker())["agentId"] == "demo"
    assert "demo agent" in await talk.agent_text()


async def test_a_prompt_sent_five_times_is_one_prompt(talk: SessionClient, journal: Path) -> None:
    name = str(uuid.uuid4())
    answers = await asyncio.gather(*(talk.prompt("[[chunk x]]", promptId=name) for _ in range(5)))
    assert len({json.dumps(answer) for answer in answers}) == 1
    await talk.wait_for_event("turn_end")
    assert (await talk.prompt("other", expect=409, promptId=name))["error"] == "conflict"
    assert await talk.agent_text() == "x"
    assert prompts_in(journal) == ["[[chunk x]]"]


async def test_a_prompt_without_an_id_is_known_by_its_key(talk: SessionClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    path = f"{talk.path}/prompt"
    first = await talk.server.call("POST", path, 202, json={"text": "[[chunk x]]"}, headers=headers)
    again = await talk.server.call("POST", path, 202, json={"text": "[[chunk x]]"}, headers=headers)
    assert again == first
    await talk.server.call("POST", path, 409, json={"text": "other"}, headers=headers)


@pytest.mark.parametrize("body", [{"text": ""}, {"text": " \n"}, {}])
async def test_an_empty_prompt_is_refused(talk: SessionClient, body: dict[str, str]) -> None:
    answer = await talk.server.call("POST", f"{talk.path}/prompt", 400, json=body)
    assert answer["error"] == "empty_message"


async def test_a_prompt_names_its_agent_by_role_or_id(talk: SessionClient) -> None:
    second = await talk.server.call(
        "POST",
        f"{talk.path}/workers",
        201,
        json={"type": "agent", "agentId": "scripted", "role": "second"},
    )
    await talk.server.worker_in(talk.id, second["id"], "active")
    await talk.prompt("[[chunk to-second]]", role="second")
    event = await talk.wait_for_event("user_prompt", text="[[chunk to-second]]")
    assert event["workerId"] == second["id"]
    assert (await talk.prompt("x", expect=404, role="nobody"))["error"] == "not_found"
    assert (await talk.prompt("x", expect=404, workerId="nobody"))["error"] == "not_found"


async def test_an_image_goes_with_its_prompt(talk: SessionClient, journal: Path) -> None:
    image = await talk.server.call("POST", f"{talk.path}/images", 201, content=png())
    await talk.run_turn("[[chunk seen]]", imageIds=[image["id"]])
    assert "image/png" in journal.read_text()
    missing = await talk.prompt("x", expect=404, imageIds=["nothing"])
    assert missing["error"] == "not_found"


# Permissions and questions


async def test_a_permission_waits_and_the_first_answer_wins(talk: SessionClient) -> None:
    await talk.prompt("[[permission]] [[chunk done]]")
    permission = await talk.open_permission()
    assert {"id", "workerId", "role", "toolCall", "options", "createdAt"} <= set(permission)
    assert {option["kind"] for option in permission["options"]} >= {"allow_once", "reject_once"}
    path = f"{talk.path}/permissions/{permission['id']}"
    assert (await talk.server.call("POST", path, 400, json={"optionId": "maybe"}))["error"] == "invalid"
    answers = await asyncio.gather(
        *(talk.server.http.post(path, json={"optionId": option}) for option in ("yes", "no"))
    )
    assert sorted(answer.status_code for answer in answers) == [204, 409]
    await talk.wait_for_event("turn_end")
    assert (await talk.server.call("GET", f"{talk.path}/permissions"))["permissions"] == []
    nobody = f"{talk.path}/permissions/nobody"
    assert (await talk.server.call("POST", nobody, 404, json={"optionId": "yes"}))["error"] == "not_found"


async def test_an_answer_sent_again_under_its_key_is_fine(talk: SessionClient) -> None:
    await talk.prompt("[[permission]]")
    path = f"{talk.path}/permissions/{(await talk.open_permission())['id']}"
    for _ in range(2):
        headers = {"Idempotency-Key": "yes"}
        await talk.server.call("POST", path, 204, json={"optionId": "yes"}, headers=headers)


async def test_an_open_permission_outlives_the_server(talk: SessionClient) -> None:
    await talk.prompt("[[permission]] [[chunk done]]")
    before = await talk.open_permission()
    await talk.server.restart()
    assert await talk.open_permission() == before
    path = f"{talk.path}/permissions/{before['id']}"
    await talk.server.call("POST", path, 204, json={"optionId": "yes"})
    assert (await talk.wait_for_event("turn_end"))["data"]["stopReason"] == "end_turn"


async def test_a_question_is_answered_once(talk: SessionClient) -> None:
    await talk.prompt("[[question 'your name?']]")
    event = await talk.wait_for_event("question", status="pending")
    (question,) = (await talk.server.call("GET", f"{talk.path}/questions"))["questions"]
    assert (question["id"], question["message"]) == (event["data"]["id"], "your name?")
    path = f"{talk.path}/questions/{question['id']}"
    body = {"action": "accept", "content": {"name": "Ada"}}
    await talk.server.call("POST", path, 204, json=body)
    assert (await talk.server.call("POST", path, 409, json=body))["error"] == "conflict"
    await talk.wait_for_event("turn_end")
    assert "Ada" in await talk.agent_text()


# Cancel and restart


async def test_a_cancelled_turn_ends_and_the_session_goes_on(talk: SessionClient) -> None:
    await talk.prompt("[[permission]] [[wait_cancel]]")
    await talk.open_permission()
    await talk.server.call("POST", f"{talk.path}/cancel", 204)
    assert (await talk.wait_for_event("turn_end"))["data"]["stopReason"] == "cancelled"
    assert (await talk.wait_for_event("permission", status="cancelled"))["data"]["id"]
    assert (await talk.server.call("GET", talk.path))["status"] == "active"
    end = await talk.run_turn("[[chunk on]]")
    assert end["data"]["stopReason"] == "end_turn"


async def test_cancelling_nothing_is_fine(talk: SessionClient) -> None:
    await talk.server.call("POST", f"{talk.path}/cancel", 204)


async def test_an_agent_that_crashed_is_restarted_with_what_was_said(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk before]]")
    await talk.prompt("[[crash]]")
    await talk.wait_for_event("worker_failed")
    worker = await talk.server.call("POST", f"{talk.path}/restart", 200, json={"continueConversation": True})
    assert (worker["run"], worker["state"]) == (2, "spawning")
    ready = await talk.server.worker_in(talk.id, worker["id"], "active")
    end = await talk.run_turn("[[chunk after]]")
    assert (ready["run"], end["data"]["stopReason"]) == (2, "end_turn")
    sessions = [each["data"] for each in await talk.events() if each["type"] == "agent_session"]
    assert sessions[0]["acpSessionId"] == sessions[1]["acpSessionId"]


async def test_a_living_agent_begins_anew_when_asked_to(talk: SessionClient) -> None:
    before = await talk.worker()
    body = {"continueConversation": False}
    worker = await talk.server.call("POST", f"{talk.path}/restart", 200, json=body)
    assert (worker["id"], worker["run"]) == (before["id"], 2)
    ready = await talk.server.worker_in(talk.id, worker["id"], "active")
    assert ready["pid"] != before["pid"]
    await talk.wait_for_event("conversation_reset")
    empty = await talk.server.new_session()
    await talk.server.call("POST", f"/api/sessions/{empty['id']}/restart", 404)


# Scopes


async def test_looking_is_not_prompting_and_prompting_is_not_defining(talk: SessionClient) -> None:
    await talk.prompt("[[permission]]")
    permission = await talk.open_permission()

    async def status(scope: str, method: str, path: str, body: object) -> int:
        token = await talk.server.call("POST", "/api/tokens", 201, json={"name": scope, "scope": scope})
        headers = {"Authorization": f"Bearer {token['token']}"}
        return (await talk.server.http.request(method, path, json=body, headers=headers)).status_code

    answer = f"{talk.path}/permissions/{permission['id']}"
    assert await status("view", "GET", f"{talk.path}/permissions", None) == 200
    assert await status("view", "POST", f"{talk.path}/prompt", {"text": "x"}) == 403
    assert await status("view", "POST", answer, {"optionId": "yes"}) == 403
    assert await status("view", "POST", f"{talk.path}/queue", {"message": "x"}) == 403
    definition = {"name": "x", "kind": "acp", "command": ["x"]}
    assert await status("operate", "PUT", "/api/agents/x", definition) == 403
    assert await status("operate", "POST", answer, {"optionId": "yes"}) == 204
