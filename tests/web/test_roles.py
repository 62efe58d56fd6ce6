"""A role over REST: started again as it was, or taken over when something else is wanted."""

from typing import Any

import pytest

from support.server import Server
from support.session_client import SessionClient, define_scripted

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_role_that_ended_is_started_again_or_taken_over(house: Server) -> None:
    await define_scripted(house)
    await define_scripted(house, "another")
    talk = SessionClient(house, await house.new_session())
    first = await started(talk, agentId="scripted")
    await crash(talk, first)
    again = await started(talk)
    assert (again["id"], again["run"], again["agentId"]) == (first["id"], 2, "scripted")
    await refused(talk, agentId="another")
    await crash(talk, again)
    other = await started(talk, agentId="another")
    assert (other["agentId"], other["run"], other["role"]) == ("another", 1, "coder")
    gone = await house.call("GET", f"{talk.path}/workers/{first['id']}")
    assert gone["state"] == "terminated"
    assert (await talk.wait_for_event("worker_terminated"))["data"]["reason"] == "replaced"
    await house.call("DELETE", talk.path)


async def test_a_terminal_in_another_place_takes_the_role_over(house: Server) -> None:
    place = house.workspace / "another-place-for-a-role"
    place.mkdir()
    talk = SessionClient(house, await house.new_session())
    first = await started(talk, type="terminal")
    async with house.socket(f"/ws/session/{talk.id}/worker/{first['id']}") as ws:
        await ws.send('{"type": "input", "data": "exit\\r"}')
        await house.worker_in(talk.id, first["id"], "exited")
    other = await started(talk, type="terminal", workspace=str(place))
    assert other["id"] != first["id"]
    assert (other["workspace"], other["run"], other["role"]) == (str(place), 1, "coder")
    await house.call("DELETE", talk.path)


async def started(talk: SessionClient, **body: str) -> dict[str, Any]:
    """Whoever gets the role of the coder, once it runs."""
    wanted = {"type": "agent", "role": "coder", **body}
    worker = await talk.server.call("POST", f"{talk.path}/workers", 201, json=wanted)
    return await talk.server.worker_in(talk.id, worker["id"], "active")


async def refused(talk: SessionClient, **body: str) -> None:
    """A living worker keeps its role."""
    wanted = {"type": "agent", "role": "coder", **body}
    await talk.server.call("POST", f"{talk.path}/workers", 409, json=wanted)


async def crash(talk: SessionClient, worker: dict[str, Any]) -> None:
    await talk.wait_for_event("agent_session")
    await talk.prompt("[[crash]]", role="coder")
    await talk.server.worker_in(talk.id, worker["id"], "failed")
