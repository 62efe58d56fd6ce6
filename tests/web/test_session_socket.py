"""Orders over a session's socket: each answered under its id, in order, by who may give them."""

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from support.server import Server
from support.session_client import SessionClient, define_scripted


@pytest.fixture
async def talk(server: Server) -> SessionClient:
    await define_scripted(server)
    return await SessionClient.begin(server)


async def order(ws: ClientConnection, message: dict[str, Any]) -> dict[str, Any]:
    """Sends an order and returns what answers it."""
    await ws.send(json.dumps(message))
    async with asyncio.timeout(60):
        while True:
            answer: dict[str, Any] = json.loads(await ws.recv())
            if answer["type"] in ("ack", "error"):
                return answer


async def test_a_prompt_is_acknowledged_under_its_id_and_once(talk: SessionClient) -> None:
    async with talk.server.socket(f"/ws/session/{talk.id}") as ws:
        message = {"type": "prompt", "id": "1", "text": "[[chunk hello]]", "promptId": "p1"}
        first = await order(ws, message)
        again = await order(ws, message | {"id": "2"})
        other = await order(ws, message | {"id": "3", "text": "other"})
    assert (first["type"], first["id"], first["promptId"], first["queued"]) == ("ack", "1", "p1", False)
    assert again == first | {"id": "2"}
    assert (other["type"], other["id"], other["error"]) == ("error", "3", "conflict")
    await talk.wait_for_event("turn_end")
    assert await talk.agent_text() == "hello"


async def test_a_permission_and_a_question_are_answered_and_a_turn_is_cancelled(talk: SessionClient) -> None:
    async with talk.server.socket(f"/ws/session/{talk.id}") as ws:
        await order(ws, {"type": "prompt", "id": 1, "text": "[[permission]] [[question]] [[wait_cancel]]"})
        permission = await talk.open_permission()
        answer = {"type": "permission", "id": 2, "permissionId": permission["id"], "optionId": "yes"}
        assert (await order(ws, answer)) == {"type": "ack", "id": 2}
        assert (await order(ws, answer))["error"] == "conflict"
        question = await talk.wait_for_event("question", status="pending")
        body = {"type": "question", "id": 3, "questionId": question["data"]["id"], "action": "decline"}
        assert (await order(ws, body)) == {"type": "ack", "id": 3}
        assert (await order(ws, {"type": "cancel", "id": 4})) == {"type": "ack", "id": 4}
    assert (await talk.wait_for_event("turn_end"))["data"]["stopReason"] == "cancelled"


async def test_the_queue_takes_its_orders_too(talk: SessionClient) -> None:
    async def waiting() -> list[str]:
        queue = await talk.server.call("GET", f"{talk.path}/queue")
        return [item["message"] for item in queue["messages"]]

    async with talk.server.socket(f"/ws/session/{talk.id}") as ws:

        async def do(action: str, **more: str) -> dict[str, Any]:
            answer = await order(ws, {"type": "queue", "id": "q", "action": action, **more})
            assert answer["type"] == "ack", answer
            return answer

        await do("pause")
        first = await do("add", message="[[chunk first]]")
        second = await do("add", message="[[chunk second]]")
        await do("move", messageId=second["messageId"], direction="up")
        await do("edit", messageId=first["messageId"], message="[[chunk edited]]")
        assert await waiting() == ["[[chunk second]]", "[[chunk edited]]"]
        await do("remove", messageId=first["messageId"])
        await do("send_now", messageId=second["messageId"])
        await talk.wait_for_event("turn_end")
        assert (await talk.agent_text(), await waiting()) == ("second", [])
        await do("resume")
        await do("clear")


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
async def test_an_order_that_makes_no_sense_is_refused_and_the_socket_stays(
    talk: SessionClient, message: dict[str, Any]
) -> None:
    async with talk.server.socket(f"/ws/session/{talk.id}") as ws:
        answer = await order(ws, message | {"id": "x"})
        assert (answer["type"], answer["id"], answer["error"]) == ("error", "x", "invalid")
        assert (await order(ws, {"type": "cancel", "id": "y"}))["type"] == "ack"


async def test_who_may_only_look_gives_no_orders(talk: SessionClient) -> None:
    token = await talk.server.call("POST", "/api/tokens", 201, json={"name": "eyes", "scope": "view"})
    headers = {"Authorization": f"Bearer {token['token']}"}
    orders: list[dict[str, Any]] = [
        {"type": "prompt", "text": "x"},
        {"type": "cancel"},
        {"type": "permission", "permissionId": "x", "optionId": "yes"},
        {"type": "question", "questionId": "x", "action": "accept"},
        {"type": "queue", "action": "clear"},
    ]
    async with talk.server.socket(f"/ws/session/{talk.id}", headers=headers) as ws:
        for each in orders:
            assert (await order(ws, each | {"id": "x"}))["error"] == "forbidden"
    assert not [event for event in await talk.events() if event["type"] == "user_prompt"]
