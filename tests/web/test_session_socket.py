"""Orders over the socket of a session: each is answered with its id, in order, if its scope allows it."""

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from support.server import Server
from support.session_client import SessionClient, define_scripted


@pytest.fixture
async def conversation(server: Server) -> SessionClient:
    await define_scripted(server)
    return await SessionClient.begin(server)


async def order(ws: ClientConnection, message: dict[str, Any]) -> dict[str, Any]:
    """Send an order and return its acknowledgement or error."""
    await ws.send(json.dumps(message))
    async with asyncio.timeout(60):
        while True:
            answer: dict[str, Any] = json.loads(await ws.recv())
            if answer["type"] in ("ack", "error"):
                return answer


async def test_a_client_that_has_every_event_gets_a_heartbeat_at_once(conversation: SessionClient) -> None:
    head = (await conversation.events())[-1]["seq"]
    async with conversation.server.socket(f"/ws/session/{conversation.id}") as ws, asyncio.timeout(10):
        await ws.send(json.dumps({"type": "subscribe", "after": head}))
        assert json.loads(await ws.recv()) == {"type": "heartbeat", "head": head}


async def test_a_prompt_is_acknowledged_under_its_id_and_once(conversation: SessionClient) -> None:
    async with conversation.server.socket(f"/ws/session/{conversation.id}") as ws:
        message = {"type": "prompt", "id": "1", "text": "[[chunk hello]]", "promptId": "p1"}
        first = await order(ws, message)
        again = await order(ws, message | {"id": "2"})
        other = await order(ws, message | {"id": "3", "text": "other"})
    assert (first["type"], first["id"], first["promptId"], first["queued"]) == ("ack", "1", "p1", False)
    assert again == first | {"id": "2"}
    assert (other["type"], other["id"], other["error"]) == ("error", "3", "conflict")
    await conversation.wait_for_event("turn_end")
    assert await conversation.agent_text() == "hello"


async def test_a_permission_and_a_question_are_answered_and_a_turn_is_cancelled(
    conversation: SessionClient,
) -> None:
    async with conversation.server.socket(f"/ws/session/{conversation.id}") as ws:
        await order(ws, {"type": "prompt", "id": 1, "text": "[[permission]] [[question]] [[wait_cancel]]"})
        permission = await conversation.open_permission()
        answer = {"type": "permission", "id": 2, "permissionId": permission["id"], "optionId": "yes"}
        assert (await order(ws, answer)) == {"type": "ack", "id": 2}
        assert (await order(ws, answer))["error"] == "conflict"
        question = await conversation.wait_for_event("question", status="pending")
        body = {"type": "question", "id": 3, "questionId": question["data"]["id"], "action": "decline"}
        assert (await order(ws, body)) == {"type": "ack", "id": 3}
        assert (await order(ws, {"type": "cancel", "id": 4})) == {"type": "ack", "id": 4}
    assert (await conversation.wait_for_event("turn_end"))["data"]["stopReason"] == "cancelled"


async def test_the_queue_is_changed_over_the_socket_too(conversation: SessionClient) -> None:
    async def waiting() -> list[str]:
        queue = await conversation.server.call("GET", f"{conversation.path}/queue")
        return [item["message"] for item in queue["messages"]]

    async with conversation.server.socket(f"/ws/session/{conversation.id}") as ws:

        async def order_queue(action: str, **more: str) -> dict[str, Any]:
            answer = await order(ws, {"type": "queue", "id": "q", "action": action, **more})
            assert answer["type"] == "ack", answer
            return answer

        await order_queue("pause")
        first = await order_queue("add", message="[[chunk first]]")
        second = await order_queue("add", message="[[chunk second]]")
        await order_queue("move", messageId=second["messageId"], direction="up")
        await order_queue("edit", messageId=first["messageId"], message="[[chunk edited]]")
        assert await waiting() == ["[[chunk second]]", "[[chunk edited]]"]
        await order_queue("remove", messageId=first["messageId"])
        await order_queue("send_now", messageId=second["messageId"])
        await conversation.wait_for_event("turn_end")
        assert (await conversation.agent_text(), await waiting()) == ("second", [])
        await order_queue("resume")
        await order_queue("clear")


@pytest.mark.parametrize(
    "message",
    [
        {"type": "queue", "action": "sing"},
        {"type": "queue", "action": "move", "messageId": "x", "direction": "left"},
        {"type": "queue", "action": ["add"]},
        {"type": "queue", "action": "remove"},
        {"type": "prompt", "text": 7},
        {"type": "prompt", "text": "x", "busy": "perhaps"},
        {"type": "prompt", "text": "x", "promptId": "a b"},
        {"type": "permission", "optionId": "yes"},
        {"type": "permission", "permissionId": 5, "optionId": "yes"},
        {"type": "question", "questionId": "x", "action": "shrug"},
        {"type": "looking", "visible": "yes"},
        {"type": "dance"},
    ],
)
async def test_an_invalid_order_is_refused_and_the_socket_stays_open(
    conversation: SessionClient, message: dict[str, Any]
) -> None:
    async with conversation.server.socket(f"/ws/session/{conversation.id}") as ws:
        answer = await order(ws, message | {"id": "x"})
        assert (answer["type"], answer["id"], answer["error"]) == ("error", "x", "invalid")
        assert (await order(ws, {"type": "cancel", "id": "y"}))["type"] == "ack"


async def test_the_orders_of_a_view_token_are_refused(conversation: SessionClient) -> None:
    token = await conversation.server.call(
        "POST", "/api/tokens", 201, json={"name": "viewer", "scope": "view"}
    )
    headers = {"Authorization": f"Bearer {token['token']}"}
    orders: list[dict[str, Any]] = [
        {"type": "prompt", "text": "x"},
        {"type": "cancel"},
        {"type": "permission", "permissionId": "x", "optionId": "yes"},
        {"type": "question", "questionId": "x", "action": "accept"},
        {"type": "queue", "action": "clear"},
    ]
    async with conversation.server.socket(f"/ws/session/{conversation.id}", headers=headers) as ws:
        for each in orders:
            assert (await order(ws, each | {"id": "x"}))["error"] == "forbidden"
    assert not [event for event in await conversation.events() if event["type"] == "user_prompt"]
