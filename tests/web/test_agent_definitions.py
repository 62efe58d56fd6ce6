"""Agent definitions over REST: listed with a missing program, added, changed, removed, kept over restarts."""

import json
import sys

from support.server import Server
from support.session_client import SessionClient

DEFINITION = {
    "id": "mine",
    "name": "Mine",
    "kind": "acp",
    "command": ["no-such-program"],
    "env": {"KEY": "secret"},
}


async def agents(server: Server) -> dict[str, dict[str, object]]:
    found = (await server.call("GET", "/api/agents"))["agents"]
    return {agent["id"]: agent for agent in found}


async def test_built_in_agents_are_listed_with_their_missing_programs(server: Server) -> None:
    listed = await agents(server)
    assert {"claude", "codex", "gemini", "opencode", "qwen", "copilot", "demo"} <= set(listed)
    assert (listed["demo"]["installed"], listed["demo"]["missing"]) == (True, None)
    assert sum(bool(agent["default"]) for agent in listed.values()) == 1
    for agent in listed.values():
        assert agent["installHint"]
        assert (agent["missing"] is None) == agent["installed"]


async def test_the_login_state_of_an_agent_is_checked_at_each_request(server: Server) -> None:
    login = {"files": ["~/.mine/auth.json"], "env": ["MINE_KEY"]}
    definition = DEFINITION | {
        "command": [sys.executable],
        "loginCommand": ["mine", "log in"],
        "login": login,
    }
    added = await server.call("POST", "/api/agents", 201, json=definition)
    assert (added["loggedIn"], added["loginCommand"]) == ("no", ["mine", "log in"])
    sign = server.workspace / ".mine" / "auth.json"  # the server runs with HOME set to the workspace
    sign.parent.mkdir()
    sign.write_text("the-secret-itself")
    listed = await agents(server)
    assert (listed["mine"]["loggedIn"], listed["demo"]["loggedIn"]) == ("yes", "none")
    assert "the-secret-itself" not in json.dumps(listed) + server.output()
    sign.unlink()
    assert (await agents(server))["mine"]["loggedIn"] == "no"
    refused = await server.call("PUT", "/api/agents/mine", 400, json=definition | {"login": {"file": []}})
    assert "did you mean files" in refused["message"]


async def test_an_agent_without_a_login_sign_can_be_started(server: Server) -> None:
    command = [sys.executable, "-m", "bullpen.agents.demo"]
    await server.call(
        "POST", "/api/agents", 201, json=DEFINITION | {"command": command, "login": {"env": ["NO_SUCH"]}}
    )
    assert (await agents(server))["mine"]["loggedIn"] == "no"
    conversation = await SessionClient.begin(server, "mine")
    assert (await conversation.worker())["state"] == "active"


async def test_a_definition_is_added_changed_removed_and_outlives_the_server(server: Server) -> None:
    added = await server.call("POST", "/api/agents", 201, json=DEFINITION)
    assert (added["missing"], added["installed"], added["added"]) == ("no-such-program", False, True)
    assert (await server.call("POST", "/api/agents", 409, json=DEFINITION))["error"] == "conflict"
    command = [sys.executable, "-m", "bullpen.agents.demo"]
    changed = await server.call("PUT", "/api/agents/mine", 200, json=DEFINITION | {"command": command})
    assert changed["installed"] is True
    await server.restart()
    conversation = await SessionClient.begin(server, "mine")
    assert (await conversation.worker())["agentId"] == "mine"
    await server.call("DELETE", "/api/agents/mine", 204)
    assert "mine" not in await agents(server)
    assert (await server.call("DELETE", "/api/agents/mine", 404))["error"] == "not_found"
    assert (await server.call("DELETE", "/api/agents/demo", 409))["error"] == "conflict"


async def test_removing_a_definition_that_replaced_a_built_in_one_restores_the_built_in_one(
    server: Server,
) -> None:
    before = (await agents(server))["gemini"]
    other = {"name": "Other", "kind": "acp", "command": ["other"]}
    await server.call("PUT", "/api/agents/gemini", 200, json=other)
    assert (await agents(server))["gemini"]["name"] == "Other"
    await server.call("DELETE", "/api/agents/gemini", 204)
    assert (await agents(server))["gemini"] == before


async def test_a_definition_sent_twice_with_one_idempotency_key_is_added_once(server: Server) -> None:
    headers = {"Idempotency-Key": "k"}
    first = await server.call("POST", "/api/agents", 201, json=DEFINITION, headers=headers)
    assert await server.call("POST", "/api/agents", 201, json=DEFINITION, headers=headers) == first


async def test_an_invalid_definition_is_refused_with_the_reason(server: Server) -> None:
    refused = await server.call("POST", "/api/agents", 400, json=DEFINITION | {"comand": ["x"]})
    assert "did you mean command" in refused["message"]
    invalid_changes: list[dict[str, object]] = [
        {"id": "../x"},
        {"kind": "telnet"},
        {"command": []},
        {"command": "sh -c x"},
        {"env": 7},
    ]
    for change in invalid_changes:
        assert (await server.call("POST", "/api/agents", 400, json=DEFINITION | change))["error"] == "invalid"
    await server.call("PUT", "/api/agents/other", 400, json=DEFINITION)


async def test_environment_values_of_a_definition_are_shown_to_admins_only(server: Server) -> None:
    await server.call("POST", "/api/agents", 201, json=DEFINITION)
    assert (await agents(server))["mine"]["env"] == {"KEY": "secret"}
    token = await server.call("POST", "/api/tokens", 201, json={"name": "x", "scope": "operate"})
    headers = {"Authorization": f"Bearer {token['token']}"}
    shown = (await server.http.get("/api/agents", headers=headers)).text
    assert "KEY" in shown
    assert "secret" not in shown
