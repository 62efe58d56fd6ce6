"""Agent definitions over REST: listed with what is missing, added, changed, removed, kept over restarts."""

import json
import sys

from support.server import Server
from support.session_client import SessionClient

MINE = {"id": "mine", "name": "Mine", "kind": "acp", "command": ["no-such-program"], "env": {"KEY": "secret"}}


async def agents(server: Server) -> dict[str, dict[str, object]]:
    found = (await server.call("GET", "/api/agents"))["agents"]
    return {agent["id"]: agent for agent in found}


async def test_what_comes_with_us_is_listed_with_what_it_lacks(server: Server) -> None:
    listed = await agents(server)
    assert {"claude", "codex", "gemini", "opencode", "qwen", "copilot", "demo"} <= set(listed)
    assert (listed["demo"]["installed"], listed["demo"]["missing"]) == (True, None)
    assert sum(bool(agent["default"]) for agent in listed.values()) == 1
    for agent in listed.values():
        assert agent["installHint"]
        assert (agent["missing"] is None) == agent["installed"]


async def test_an_agent_says_whether_a_login_was_found_the_moment_it_is_asked(server: Server) -> None:
    login = {"files": ["~/.mine/auth.json"], "env": ["MINE_KEY"]}
    mine = MINE | {"command": [sys.executable], "loginCommand": ["mine", "log in"], "login": login}
    told = await server.call("POST", "/api/agents", 201, json=mine)
    assert (told["loggedIn"], told["loginCommand"]) == ("no", ["mine", "log in"])
    sign = server.workspace / ".mine" / "auth.json"  # the server's home
    sign.parent.mkdir()
    sign.write_text("the-secret-itself")
    listed = await agents(server)
    assert (listed["mine"]["loggedIn"], listed["demo"]["loggedIn"]) == ("yes", "none")
    assert "the-secret-itself" not in json.dumps(listed) + server.output()
    sign.unlink()
    assert (await agents(server))["mine"]["loggedIn"] == "no"
    wrong = await server.call("PUT", "/api/agents/mine", 400, json=mine | {"login": {"file": []}})
    assert "did you mean files" in wrong["message"]


async def test_an_agent_without_a_sign_of_a_login_can_be_started(server: Server) -> None:
    command = [sys.executable, "-m", "bullpen.agents.demo"]
    await server.call(
        "POST", "/api/agents", 201, json=MINE | {"command": command, "login": {"env": ["NO_SUCH"]}}
    )
    assert (await agents(server))["mine"]["loggedIn"] == "no"
    talk = await SessionClient.begin(server, "mine")
    assert (await talk.worker())["state"] == "active"


async def test_a_definition_is_added_changed_removed_and_outlives_the_server(server: Server) -> None:
    added = await server.call("POST", "/api/agents", 201, json=MINE)
    assert (added["missing"], added["installed"], added["added"]) == ("no-such-program", False, True)
    assert (await server.call("POST", "/api/agents", 409, json=MINE))["error"] == "conflict"
    command = [sys.executable, "-m", "bullpen.agents.demo"]
    changed = await server.call("PUT", "/api/agents/mine", 200, json=MINE | {"command": command})
    assert changed["installed"] is True
    await server.restart()
    talk = await SessionClient.begin(server, "mine")
    assert (await talk.worker())["agentId"] == "mine"
    await server.call("DELETE", "/api/agents/mine", 204)
    assert "mine" not in await agents(server)
    assert (await server.call("DELETE", "/api/agents/mine", 404))["error"] == "not_found"
    assert (await server.call("DELETE", "/api/agents/demo", 409))["error"] == "conflict"


async def test_one_that_stood_in_front_of_ours_leaves_it_as_it_was(server: Server) -> None:
    before = (await agents(server))["gemini"]
    other = {"name": "Other", "kind": "acp", "command": ["other"]}
    await server.call("PUT", "/api/agents/gemini", 200, json=other)
    assert (await agents(server))["gemini"]["name"] == "Other"
    await server.call("DELETE", "/api/agents/gemini", 204)
    assert (await agents(server))["gemini"] == before


async def test_a_definition_sent_twice_under_one_key_is_added_once(server: Server) -> None:
    headers = {"Idempotency-Key": "k"}
    first = await server.call("POST", "/api/agents", 201, json=MINE, headers=headers)
    assert await server.call("POST", "/api/agents", 201, json=MINE, headers=headers) == first


async def test_a_wrong_definition_is_told_what_is_wrong(server: Server) -> None:
    wrong = await server.call("POST", "/api/agents", 400, json=MINE | {"comand": ["x"]})
    assert "did you mean command" in wrong["message"]
    wrongs: list[dict[str, object]] = [
        {"id": "../x"},
        {"kind": "telnet"},
        {"command": []},
        {"command": "sh -c x"},
        {"env": 7},
    ]
    for change in wrongs:
        assert (await server.call("POST", "/api/agents", 400, json=MINE | change))["error"] == "invalid"
    await server.call("PUT", "/api/agents/other", 400, json=MINE)


async def test_values_in_a_definition_are_for_who_administers(server: Server) -> None:
    await server.call("POST", "/api/agents", 201, json=MINE)
    assert (await agents(server))["mine"]["env"] == {"KEY": "secret"}
    token = await server.call("POST", "/api/tokens", 201, json={"name": "x", "scope": "operate"})
    headers = {"Authorization": f"Bearer {token['token']}"}
    shown = (await server.http.get("/api/agents", headers=headers)).text
    assert "KEY" in shown
    assert "secret" not in shown
