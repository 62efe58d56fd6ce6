"""The role of an ended worker over REST: its worker is restarted, or replaced if the request differs."""

from typing import Any

import pytest

from support.server import Server
from support.session_client import SessionClient, define_scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_role_of_an_ended_worker_is_restarted_or_replaced(shared_server: Server) -> None:
    await define_scripted(shared_server)
    await define_scripted(shared_server, "another")
    conversation = SessionClient(shared_server, await shared_server.new_session())
    first = await start_coder(conversation, agentId="scripted")
    await crash(conversation, first)
    restarted = await start_coder(conversation)
    assert (restarted["id"], restarted["run"], restarted["agentId"]) == (first["id"], 2, "scripted")
    await check_refused(conversation, agentId="another")
    await crash(conversation, restarted)
    other = await start_coder(conversation, agentId="another")
    assert (other["agentId"], other["run"], other["role"]) == ("another", 1, "coder")
    replaced = await shared_server.call("GET", f"{conversation.path}/workers/{first['id']}")
    assert replaced["state"] == "terminated"
    assert (await conversation.wait_for_event("worker_terminated"))["data"]["reason"] == "replaced"
    await shared_server.call("DELETE", conversation.path)


async def test_a_terminal_in_another_directory_replaces_the_ended_one_of_its_role(
    shared_server: Server,
) -> None:
    directory = shared_server.workspace / "another-directory"
    directory.mkdir()
    conversation = SessionClient(shared_server, await shared_server.new_session())
    first = await start_coder(conversation, type="terminal")
    async with shared_server.socket(f"/ws/session/{conversation.id}/worker/{first['id']}") as ws:
        await ws.send('{"type": "input", "data": "exit\\r"}')
        await shared_server.worker_in(conversation.id, first["id"], "exited")
    other = await start_coder(conversation, type="terminal", workspace=str(directory))
    assert other["id"] != first["id"]
    assert (other["workspace"], other["run"], other["role"]) == (str(directory), 1, "coder")
    await shared_server.call("DELETE", conversation.path)


async def start_coder(conversation: SessionClient, **body: str) -> dict[str, Any]:
    """Request a worker with the role of the coder, and return it when it runs."""
    requested = {"type": "agent", "role": "coder", **body}
    worker = await conversation.server.call("POST", f"{conversation.path}/workers", 201, json=requested)
    return await conversation.server.worker_in(conversation.id, worker["id"], "active")


async def check_refused(conversation: SessionClient, **body: str) -> None:
    """Check that a request for the role of a running worker is refused."""
    requested = {"type": "agent", "role": "coder", **body}
    await conversation.server.call("POST", f"{conversation.path}/workers", 409, json=requested)


async def crash(conversation: SessionClient, worker: dict[str, Any]) -> None:
    await conversation.wait_for_event("agent_session")
    await conversation.prompt("[[crash]]", role="coder")
    await conversation.server.worker_in(conversation.id, worker["id"], "failed")
