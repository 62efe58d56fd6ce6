"""Messages from Bullpen to agents: each is one line of JSON-RPC and is recorded by one fact."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from bullpen import __version__
from bullpen.domain.agents import AgentDefinition, OfferedCapabilities
from bullpen.domain.conversation import (
    AgentInitialized,
    NoticeSent,
    Permission,
    Question,
    ReplySent,
    RequestReceived,
    RequestSent,
)
from bullpen.domain.conversation_state import Conversation, fold_conversation
from bullpen.domain.events import Event, Fact
from bullpen.wire import acp_calls

STDIO = {"name": "files", "command": "mcp-files", "args": [], "env": []}
HTTP = {"type": "http", "name": "web", "url": "http://127.0.0.1:1/mcp", "headers": []}


def agent(**changes: Any) -> AgentDefinition:
    return AgentDefinition(id="a", name="A", kind="acp", command=("a",), **changes)


def after(*facts: Fact) -> Conversation:
    state = Conversation()
    for fact in facts:
        state = fold_conversation(state, Event(1, 1, fact, "w", "w"))
    return state


def test_an_agent_is_offered_the_capabilities_of_its_definition() -> None:
    for fs, terminal in ((False, True), (True, False)):
        call = acp_calls.initialize(agent(offer=OfferedCapabilities(fs=fs, terminal=terminal)))
        assert json.loads(call.line(1)) == {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": 1,
                "clientCapabilities": {
                    "fs": {"readTextFile": fs, "writeTextFile": fs},
                    "terminal": terminal,
                    "elicitation": {"form": {}},
                    "session": {"configOptions": {"boolean": {}}},
                    "auth": {"terminal": True},
                },
                "clientInfo": {"name": "bullpen", "title": "Bullpen", "version": __version__},
            },
        }
        assert call.fact(1) == RequestSent(n=1, method="initialize")


@pytest.mark.parametrize(
    ("call", "method", "params", "kept"),
    [
        (lambda: acp_calls.authenticate("key"), "authenticate", {"methodId": "key"}, ["methodId"]),
        (
            lambda: acp_calls.session_new("/p", (STDIO,)),
            "session/new",
            {"cwd": "/p", "mcpServers": [STDIO]},
            None,
        ),
        (
            lambda: acp_calls.session_load("s", "/p", (STDIO,)),
            "session/load",
            {"sessionId": "s", "cwd": "/p", "mcpServers": [STDIO]},
            ["sessionId"],
        ),
        (
            lambda: acp_calls.session_resume("s", "/p", (STDIO,)),
            "session/resume",
            {"sessionId": "s", "cwd": "/p", "mcpServers": [STDIO]},
            ["sessionId"],
        ),
        (
            lambda: acp_calls.session_prompt("s", "hi", [("image/png", "aGk=")]),
            "session/prompt",
            {
                "sessionId": "s",
                "prompt": [
                    {"type": "text", "text": "hi"},
                    {"type": "image", "mimeType": "image/png", "data": "aGk="},
                ],
            },
            None,
        ),
        (
            lambda: acp_calls.set_mode("s", "plan"),
            "session/set_mode",
            {"sessionId": "s", "modeId": "plan"},
            ["modeId"],
        ),
        (
            lambda: acp_calls.set_model("s", "m"),
            "session/set_model",
            {"sessionId": "s", "modelId": "m"},
            ["modelId"],
        ),
        (
            lambda: acp_calls.set_config_option("s", "c", "v"),
            "session/set_config_option",
            {"sessionId": "s", "configId": "c", "value": "v"},
            ["configId", "value"],
        ),
        (
            lambda: acp_calls.set_config_option("s", "c", True),
            "session/set_config_option",
            {"sessionId": "s", "configId": "c", "value": True, "type": "boolean"},
            ["configId", "value"],
        ),
    ],
)
def test_a_request_is_a_line_with_its_number_and_its_fact_keeps_what_the_answer_needs(
    call: Callable[[], acp_calls.OutgoingCall], method: str, params: dict[str, Any], kept: list[str] | None
) -> None:
    outgoing = call()
    assert json.loads(outgoing.line(7)) == {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    needed = None if kept is None else {name: params[name] for name in kept}
    assert outgoing.fact(7) == RequestSent(n=7, method=method, params=needed)


def test_the_fact_of_a_prompt_request_does_not_repeat_its_text() -> None:
    assert acp_calls.session_prompt("s", "a long text").fact(7) == RequestSent(n=7, method="session/prompt")


def test_cancel_is_a_notification_without_an_id() -> None:
    notice = acp_calls.session_cancel("s")
    assert json.loads(notice.line(7)) == {
        "jsonrpc": "2.0",
        "method": "session/cancel",
        "params": {"sessionId": "s"},
    }
    assert notice.fact(7) == NoticeSent(n=7, method="session/cancel")


def test_mcp_servers_of_a_type_that_the_agent_does_not_support_are_left_out() -> None:
    definition = agent(mcp_servers=(STDIO, HTTP))
    plain = after(AgentInitialized(result={}))
    with_http = after(
        AgentInitialized(result={"agentCapabilities": {"mcpCapabilities": {"http": True, "sse": False}}})
    )
    assert acp_calls.mcp_servers(definition, plain) == [STDIO]
    assert acp_calls.mcp_servers(definition, with_http) == [STDIO, HTTP]
    sse = agent(mcp_servers=({**HTTP, "type": "sse"}, {**STDIO, "type": "stdio"}))
    assert acp_calls.mcp_servers(sse, with_http) == [{**STDIO, "type": "stdio"}]


def test_a_server_gets_the_required_fields_that_its_definition_leaves_out() -> None:
    short = ({"name": "files", "command": "mcp-files"}, {"type": "sse", "name": "web", "url": "http://x"})
    state = after(AgentInitialized(result={"agentCapabilities": {"mcpCapabilities": {"sse": True}}}))
    assert acp_calls.mcp_servers(agent(mcp_servers=short), state) == [
        {"name": "files", "command": "mcp-files", "args": [], "env": []},
        {"type": "sse", "name": "web", "url": "http://x", "headers": []},
    ]


def test_a_permission_is_answered_with_its_option_or_as_cancelled() -> None:
    assert acp_calls.permission_result("yes") == {"outcome": {"outcome": "selected", "optionId": "yes"}}
    assert acp_calls.permission_result(None) == {"outcome": {"outcome": "cancelled"}}


def test_a_question_is_answered_with_the_actions_of_the_protocol() -> None:
    assert acp_calls.question_result("accepted", {"a": 1}) == {"action": "accept", "content": {"a": 1}}
    assert acp_calls.question_result("accepted", ["no form"]) == {"action": "accept", "content": {}}
    assert acp_calls.question_result("declined") == {"action": "decline"}
    assert acp_calls.question_result("cancelled") == {"action": "cancel"}


def test_cancelling_answers_every_open_permission_and_question_and_nothing_else() -> None:
    state = after(
        RequestReceived(id="before", rpc_id=9, method="terminal/wait_for_exit"),
        RequestReceived(id="p", rpc_id=0, method="session/request_permission"),
        Permission(id="p", tool_call={}, options=[], status="pending"),
        RequestReceived(id="q", rpc_id="u", method="elicitation/create"),
        Question(id="q", message="?", status="pending"),
        RequestReceived(id="t", rpc_id=2, method="terminal/wait_for_exit"),
    )
    replies = acp_calls.cancellation_replies(state)
    assert [reply.fact(3) for reply in replies] == [
        ReplySent(n=3, method="session/request_permission", id="p"),
        ReplySent(n=3, method="elicitation/create", id="q"),
    ]
    lines = [json.loads(reply.line(1)) for reply in replies]
    assert lines == [
        {"jsonrpc": "2.0", "id": 0, "result": {"outcome": {"outcome": "cancelled"}}},
        {"jsonrpc": "2.0", "id": "u", "result": {"action": "cancel"}},
    ]


def test_a_reply_and_its_fact_name_the_request_they_answer() -> None:
    reply = acp_calls.OutgoingReply(
        rpc_id=3, method="m", fault=acp_calls.ErrorReply(-32000, "no", {"x": 1}), id="w.1.5"
    )
    assert reply.fact(9) == ReplySent(n=9, method="m", id="w.1.5")
    error = {"code": -32000, "message": "no", "data": {"x": 1}}
    assert json.loads(reply.line(9)) == {"jsonrpc": "2.0", "id": 3, "error": error}
