"""Every message that Bullpen sends to an agent conforms to the schema of the official ACP package."""

import ast
import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from acp.meta import AGENT_METHODS, CLIENT_METHODS

from bullpen.wire import acp, acp_calls
from conformance.official import TO_AGENT, TO_CLIENT, Side
from support.pictures import png
from support.scripted_agent.journal import message_of, read_journal
from support.server import Server
from support.session_client import SessionClient, define_scripted

SERVERS = [
    {"name": "files", "command": "/bin/true", "args": ["-v"], "env": [{"name": "A", "value": "b"}]},
    {"name": "short", "command": "/bin/true"},
    {
        "type": "http",
        "name": "web",
        "url": "http://127.0.0.1:1/mcp",
        "headers": [{"name": "A", "value": "b"}],
    },
    {"type": "sse", "name": "old", "url": "http://[::1]:1/"},
]
CAPABILITIES = {
    "loadSession": True,
    "promptCapabilities": {"image": True},
    "mcpCapabilities": {"http": True, "sse": True},
}
FORM_ANSWERS: list[dict[str, Any]] = [
    {"action": "accept", "content": {"name": "Ada"}},
    {"action": "decline"},
    {"action": "cancel"},
]
OPTIONS = [
    {"id": "pace", "name": "Pace", "type": "select", "currentValue": "slow", "options": []},
    {"id": "loud", "name": "Loud", "type": "boolean", "currentValue": False},
]


async def test_every_message_conforms_to_the_schema(server: Server) -> None:
    journals = [
        await send_every_message(server),
        await withdraw_a_permission_and_load(server),
        await fail_to_log_in(server),
    ]
    bullpen = Side(sends=TO_AGENT, answers=TO_CLIENT)
    for journal in journals:
        check_journal(bullpen, journal)
    assert requests_of_bullpen() <= set(bullpen.sent), "a request was never sent"
    results = {f"{method}: result" for method in answered_by_bullpen()}
    assert results <= set(bullpen.sent), "a request of an agent was never answered"
    codes = {name.partition(": ")[2] for name in bullpen.sent if ": " in name} - {"result"}
    assert codes == {"-32002", "-32601", "-32602", "-32800"}


async def send_every_message(server: Server) -> Path:
    """Run a conversation with every kind of prompt, answer, setting and error, and restart the agent."""
    script = {
        "agent": {
            "initialize": {"agentCapabilities": CAPABILITIES | {"sessionCapabilities": {"resume": {}}}},
            "session": {"configOptions": OPTIONS},
        },
        "on": {"session/set_config_option": [{"do": "answer", "result": {"configOptions": OPTIONS}}]},
    }
    journal = await define_scripted(server, "all", script, mcpServers=SERVERS)
    talk = await SessionClient.begin(server, "all")
    image = await server.call("POST", f"{talk.path}/images", 201, content=png())
    await talk.run_turn("[[chunk seen]]", imageIds=[image["id"]])
    await change_settings(talk)
    for option in ("yes", "no", None):
        await answer_permission(talk, option)
    for answer in (
        {"action": "accept", "content": {"name": "Ada"}},
        {"action": "decline"},
        {"action": "cancel"},
    ):
        await answer_question(talk, answer)
    await talk.run_turn("[[write path=new content=text]] [[read new]] [[terminal 'exit 3']]")
    await talk.run_turn("[[terminal 'sleep 1000' kill=true]]")
    for method, params in (
        ("fs/read_text_file", {"path": "missing"}),
        ("fs/read_text_file", {"path": "../home"}),
        ("fs/write_text_file", {"path": "a"}),
        ("terminal/create", {}),
        ("terminal/output", {"terminalId": "none"}),
        ("craft/drain", {}),
    ):
        end = await talk.run_turn(f"[[ask method={method} 'params={json.dumps(params)}']]")
        assert end["data"]["stopReason"] == "error"
    await restart(talk)
    await talk.prompt("[[chunk last]] [[wait_cancel]]")
    await talk.wait_for_event("agent_message", text="last")
    await server.call("DELETE", talk.path, 200)
    return journal


async def withdraw_a_permission_and_load(server: Server) -> Path:
    """Use an agent that withdraws its own permission request, and can load its session but not resume it."""
    script = {"agent": {"initialize": {"agentCapabilities": CAPABILITIES}}}
    journal = await define_scripted(server, "loading", script)
    talk = await SessionClient.begin(server, "loading")
    withdraw = """[[notify method=$/cancel_request 'params={"requestId": 0}']]"""
    await talk.prompt(f"[[permission wait=false]] {withdraw}")
    await talk.wait_for_event("permission", status="cancelled")
    await talk.wait_for_event("turn_end")
    await restart(talk)
    return journal


async def fail_to_log_in(server: Server) -> Path:
    """Use an agent that still requires a login after it was logged in to."""
    script = {
        "agent": {"initialize": {"authMethods": [{"id": "key", "name": "Key"}]}},
        "on": {"session/new": [{"do": "error", "code": -32000, "text": "log in first"}]},
    }
    settings = {"env": {"MY_KEY": "secret"}, "auth": {"MY_KEY": "key"}}
    journal = await define_scripted(server, "locked", script, **settings)
    talk = SessionClient(server, await server.new_session(agentId="locked"))
    await talk.wait_for_event("worker_failed")
    return journal


async def change_settings(talk: SessionClient) -> None:
    """Change every setting of the agent, and wait for its answer to each."""
    path = f"{talk.path}/workers/{(await talk.worker())['id']}"
    for choice, body in (
        ("mode", {"modeId": "auto"}),
        ("model", {"modelId": "large"}),
        ("options/pace", {"value": "fast"}),
        ("options/loud", {"value": True}),
    ):
        await talk.server.call("PUT", f"{path}/{choice}", 204, json=body)


async def answer_permission(talk: SessionClient, option: str | None) -> None:
    """Answer a permission with an option, or cancel the turn that asks for it."""
    prompted = await talk.prompt("[[permission]]")
    permission = await talk.open_permission()
    if option is None:
        await talk.server.call("POST", f"{talk.path}/cancel", 204)
    else:
        path = f"{talk.path}/permissions/{permission['id']}"
        await talk.server.call("POST", path, 204, json={"optionId": option})
    await talk.wait_for_event("turn_end", after=prompted["seq"])


async def answer_question(talk: SessionClient, answer: dict[str, Any]) -> None:
    prompted = await talk.prompt("[[question]]")
    asked = await talk.wait_for_event("question", after=prompted["seq"])
    await talk.server.call("POST", f"{talk.path}/questions/{asked['data']['id']}", 204, json=answer)
    await talk.wait_for_event("turn_end", after=prompted["seq"])


async def restart(talk: SessionClient) -> None:
    """Restart the agent in the same conversation."""
    seq = (await talk.events())[-1]["seq"]
    await talk.server.call("POST", f"{talk.path}/restart", 200, json={"continueConversation": True})
    await talk.wait_for_event("agent_session", after=seq)


def check_journal(bullpen: Side, journal: Path) -> None:
    for record in read_journal(journal):
        if record["dir"] == "out":
            bullpen.note_request(message_of(record))
        elif record["dir"] == "in":
            bullpen.check(message_of(record))


def test_one_method_that_bullpen_sends_is_not_in_the_schema() -> None:
    assert set(TO_AGENT) - set(AGENT_METHODS.values()) == {"session/set_model"}
    assert set(TO_CLIENT) <= set(CLIENT_METHODS.values())


def requests_of_bullpen() -> set[str]:
    """Return the methods that `acp_calls` can send: the first arguments of all calls of its constructors."""
    return {
        ast.literal_eval(node.args[0])
        for node in ast.walk(ast.parse(inspect.getsource(acp_calls)))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("Call", "Notice", "_reattach")
        and isinstance(node.args[0], ast.Constant)
    }


def answered_by_bullpen() -> set[str]:
    """Return the requests of an agent that `AcpReader` knows by name."""
    constants = [
        node.value
        for node in ast.walk(ast.parse(inspect.getsource(acp.AcpReader)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return {method for method in constants if method in TO_CLIENT and TO_CLIENT[method].result}


@pytest.mark.parametrize(
    "message",
    [
        {"method": "session/new", "id": 1, "params": {"cwd": "/x", "mcpServers": [], "color": "red"}},
        {"method": "session/new", "id": 1, "params": {"cwd": "/x", "mcpServers": [{"name": "a"}]}},
        {"method": "session/new", "id": 1, "params": {"cwd": "/x"}},
        {"method": "session/new", "params": {"cwd": "/x", "mcpServers": []}},
        {"method": "initialize", "id": 1, "params": {"protocolVersion": "1"}},
        {"method": "initialize", "id": 1, "params": {"protocolVersion": 1, "clientInfo": "bullpen"}},
        {"method": "session/cancel", "id": 1, "params": {"sessionId": "s"}},
        {"id": 7, "result": {"action": "accept", "content": ["Ada"]}},
        {"id": 7, "result": {"action": "later"}},
        {"id": 7, "error": {"code": "x", "message": "no"}},
        {"id": 7, "error": {"code": 1, "message": "no"}, "result": None},
    ],
)
def test_a_message_that_does_not_conform_is_reported(message: dict[str, Any]) -> None:
    side = Side(sends=TO_AGENT, answers=TO_CLIENT)
    side.note_request({"id": 7, "method": "elicitation/create"})
    with pytest.raises(AssertionError):
        side.check({"jsonrpc": "2.0", **message})
