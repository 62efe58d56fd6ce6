"""The queue over REST: status codes, order, pausing, and the source of its settings."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.server import Server
from support.session_client import SessionClient, define_scripted


@pytest.fixture
async def busy(server: Server) -> SessionClient:
    """A session whose agent works until it is cancelled."""
    await define_scripted(server)
    conversation = await SessionClient.begin(server)
    await conversation.prompt("[[wait_cancel]]")
    await conversation.wait_for_event("turn_start")
    return conversation


async def add(conversation: SessionClient, message: str, expect: int = 201) -> dict[str, str]:
    item: dict[str, str] = await conversation.server.call(
        "POST", f"{conversation.path}/queue", expect, json={"message": message}
    )
    return item


async def waiting(conversation: SessionClient) -> list[str]:
    queue = await conversation.server.call("GET", f"{conversation.path}/queue")
    assert queue["count"] == len(queue["messages"])
    return [item["message"] for item in queue["messages"]]


async def test_a_message_is_added_shown_edited_and_removed(busy: SessionClient) -> None:
    body = {"message": "later", "client_id": "laptop"}
    item = await busy.server.call("POST", f"{busy.path}/queue", 201, json=body)
    assert set(item) == {
        "id",
        "message",
        "image_ids",
        "queued_at",
        "client_id",
        "title",
        "scheduled_time",
        "state",
    }
    assert (item["client_id"], item["state"], item["image_ids"]) == ("laptop", "queued", [])
    path = f"{busy.path}/queue/{item['id']}"
    assert await busy.server.call("GET", path, 200) == item
    edited = await busy.server.call("PATCH", path, 200, json={"message": "much later"})
    assert edited == item | {"message": "much later", "title": "much later"}
    await busy.server.call("PATCH", path, 400, json={"message": " "})
    await busy.server.call("DELETE", path, 204)
    for method in ("GET", "PATCH", "DELETE"):
        gone = await busy.server.call(method, path, 404, json={"message": "x"})
        assert gone["error"] == "not_found"


async def test_an_empty_message_and_one_beyond_the_limit_are_refused(busy: SessionClient) -> None:
    assert (await add(busy, "  ", 400))["error"] == "empty_message"
    for number in range(10):
        await add(busy, f"message {number}")
    assert (await add(busy, "one too many", 409))["error"] == "queue_full"
    assert (await busy.prompt("one too many", expect=409))["error"] == "queue_full"
    await busy.server.call("PUT", f"{busy.path}/queue/settings", 200, json={"max_size": 11})
    await add(busy, "one more")
    await busy.server.call("DELETE", f"{busy.path}/queue", 204)
    assert await waiting(busy) == []


async def test_messages_move_up_and_down(busy: SessionClient) -> None:
    items = [await add(busy, message) for message in ("a", "b", "c")]

    async def move(item: dict[str, str], direction: str) -> None:
        path = f"{busy.path}/queue/{item['id']}/move"
        await busy.server.call("POST", path, 200, json={"direction": direction})

    await move(items[2], "up")
    assert await waiting(busy) == ["a", "c", "b"]
    await move(items[0], "down")
    assert await waiting(busy) == ["c", "a", "b"]
    await move(items[2], "up")
    assert await waiting(busy) == ["c", "a", "b"]
    path = f"{busy.path}/queue/{items[0]['id']}/move"
    assert (await busy.server.call("POST", path, 400, json={"direction": "left"}))["error"] == "invalid"
    await busy.server.call("POST", f"{busy.path}/queue/unknown/move", 404, json={"direction": "up"})


async def test_a_prompt_to_a_busy_agent_waits_is_refused_or_interrupts(busy: SessionClient) -> None:
    assert (await busy.prompt("[[chunk queued]]"))["queued"] is True
    assert (await busy.prompt("x", expect=409, busy="reject"))["error"] == "conflict"
    assert (await busy.prompt("x", expect=400, busy="perhaps"))["error"] == "invalid"
    await busy.prompt("[[chunk interrupting]]", busy="interrupt")
    assert (await busy.wait_for_event("turn_end"))["data"]["stopReason"] == "cancelled"
    await busy.wait_for_event("user_prompt", text="[[chunk interrupting]]")


async def test_a_cancelled_turn_pauses_the_queue_and_resume_continues_it(busy: SessionClient) -> None:
    first, second = await add(busy, "[[chunk first]]"), await add(busy, "[[chunk second]]")
    await busy.server.call("POST", f"{busy.path}/cancel", 204)
    await busy.wait_for_event("turn_end")
    await busy.wait_for_event("queue_paused")
    assert (await busy.server.call("GET", f"{busy.path}/queue"))["paused"] is True
    resumed = await busy.server.call("POST", f"{busy.path}/queue/resume", 200)
    assert resumed["paused"] is False
    first_start = await busy.wait_for_event("turn_start", promptId=first["id"])
    second_start = await busy.wait_for_event("turn_start", promptId=second["id"])
    assert first_start["seq"] < second_start["seq"]
    await busy.wait_for_event("turn_end", after=second_start["seq"])
    assert (await waiting(busy), await busy.agent_text()) == ([], "firstsecond")


async def test_a_message_sent_now_interrupts_the_turn_even_while_the_queue_is_paused(
    busy: SessionClient,
) -> None:
    await add(busy, "[[chunk first]]")
    urgent = await add(busy, "[[chunk urgent]]")
    await busy.server.call("POST", f"{busy.path}/queue/pause", 200)
    await busy.server.call("POST", f"{busy.path}/queue/{urgent['id']}/send-now", 204)
    assert (await busy.wait_for_event("turn_end"))["data"]["stopReason"] == "cancelled"
    await busy.wait_for_event("user_prompt", text="[[chunk urgent]]")
    assert await waiting(busy) == ["[[chunk first]]"]


async def test_an_idle_agent_gets_a_queued_message_at_once(server: Server) -> None:
    await define_scripted(server)
    conversation = await SessionClient.begin(server)
    item = await add(conversation, "[[chunk hello]]")
    await conversation.wait_for_event("user_prompt", promptId=item["id"])
    await conversation.wait_for_event("turn_end")
    assert await conversation.agent_text() == "hello"


async def test_a_message_added_twice_with_one_idempotency_key_is_one_message(busy: SessionClient) -> None:
    headers = {"Idempotency-Key": "k"}
    path, body = f"{busy.path}/queue", {"message": "once"}
    first = await busy.server.call("POST", path, 201, json=body, headers=headers)
    assert await busy.server.call("POST", path, 201, json=body, headers=headers) == first
    assert await waiting(busy) == ["once"]


async def test_settings_are_changed_one_by_one_and_checked(busy: SessionClient) -> None:
    path = f"{busy.path}/queue/settings"
    before = await busy.server.call("GET", path)
    built_in = {"enabled": True, "delay_seconds": 0, "max_size": 10, "auto_generate_titles": True}
    assert before == built_in | {"inherited": True}
    after = await busy.server.call("PUT", path, 200, json={"delay_seconds": 1.5})
    assert after == built_in | {"delay_seconds": 1.5, "inherited": False}
    assert (await busy.server.call("PUT", path, 400, json={"max_size": 0}))["error"] == "invalid"


# The source of the settings


async def settings_of(server: Server, session_id: str) -> dict[str, Any]:
    found: dict[str, Any] = await server.call("GET", f"/api/sessions/{session_id}/queue/settings", 200)
    return found


async def test_queue_settings_come_from_the_session_the_repository_or_the_server(
    tmp_path: Path, workspace: Path
) -> None:
    server = Server(tmp_path / "home", workspace, {"BULLPEN_QUEUE_MAX_SIZE": "7"})
    await server.start()
    try:
        subprocess.run(["git", "init", "-q", str(workspace / "project")], check=True)
        body = {"path": str(workspace / "project")}
        repository = await server.call("POST", "/api/repositories", 201, json=body)
        quick = await server.new_session()
        first = await server.call("POST", "/api/sessions", 201, json={"repoId": repository["id"]})
        own = await server.call("POST", "/api/sessions", 201, json={"repoId": repository["id"]})
        for session in (quick, first, own):
            assert (await settings_of(server, session["id"]))["max_size"] == 7
        path = f"/api/sessions/{own['id']}/queue/settings"
        changed = await server.call("PUT", path, 200, json={"max_size": 3})
        assert (changed["max_size"], changed["inherited"]) == (3, False)

        change = {"queue": {"max_size": 50, "delay_seconds": 2}}
        edited = await server.call("PATCH", f"/api/repositories/{repository['id']}", 200, json=change)
        assert edited["queue"] == change["queue"] | {"enabled": None, "auto_generate_titles": None}
        later = await server.call("POST", "/api/sessions", 201, json={"repoId": repository["id"]})
        for session, size in ((quick, 7), (first, 50), (own, 3), (later, 50)):
            assert (await settings_of(server, session["id"]))["max_size"] == size

        again = await server.call("PUT", path, 200, json={"inherited": True})
        assert (again["max_size"], again["delay_seconds"], again["inherited"]) == (50, 2, True)
        back = {"queue": {"max_size": None}}
        await server.call("PATCH", f"/api/repositories/{repository['id']}", 200, json=back)
        settings = await settings_of(server, own["id"])
        assert (settings["max_size"], settings["delay_seconds"]) == (7, 2)
        invalid = {"queue": {"max_size": 0}}
        await server.call("PATCH", f"/api/repositories/{repository['id']}", 400, json=invalid)
    finally:
        await server.close()


async def test_a_live_session_inherits_new_queue_settings_when_the_server_starts(server: Server) -> None:
    session = await server.new_session()
    await server.new_terminal(session["id"])
    await server.kill()
    server.set(BULLPEN_QUEUE_ENABLED="false")
    await server.start()
    assert (await settings_of(server, session["id"]))["enabled"] is False
