"""What we say to agents: one line each, understood by the other side, told by one fact each."""

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


def test_an_agent_is_offered_what_its_definition_says() -> None:
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
def test_a_request_is_a_line_under_its_number_and_keeps_what_its_answer_needs(
    call: Callable[[], acp_calls.OutgoingCall], method: str, params: dict[str, Any], kept: list[str] | None
) -> None:
    said = call()
    assert json.loads(said.line(7)) == {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    needed = None if kept is None else {name: params[name] for name in kept}
    assert said.fact(7) == RequestSent(n=7, method=method, params=needed)


def test_a_prompt_is_not_kept_twice() -> None:
    assert acp_calls.session_prompt("s", "a long text").fact(7) == RequestSent(n=7, method="session/prompt")


def test_cancel_is_a_notice_that_wants_no_answer() -> None:
    notice = acp_calls.session_cancel("s")
    assert json.loads(notice.line(7)) == {
        "jsonrpc": "2.0",
        "method": "session/cancel",
        "params": {"sessionId": "s"},
    }
    assert notice.fact(7) == NoticeSent(n=7, method="session/cancel")


def test_servers_an_agent_cannot_reach_are_left_out() -> None:
    definition = agent(mcp_servers=(STDIO, HTTP))
    plain = after(AgentInitialized(result={}))
    webby = after(
        AgentInitialized(result={"agentCapabilities": {"mcpCapabilities": {"http": True, "sse": False}}})
    )
    assert acp_calls.mcp_servers(definition, plain) == [STDIO]
    assert acp_calls.mcp_servers(definition, webby) == [STDIO, HTTP]
    sse = agent(mcp_servers=({**HTTP, "type": "sse"}, {**STDIO, "type": "stdio"}))
    assert acp_calls.mcp_servers(sse, webby) == [{**STDIO, "type": "stdio"}]


def test_a_server_gets_the_required_fields_that_its_definition_leaves_out() -> None:
    short = ({"name": "files", "command": "mcp-files"}, {"type": "sse", "name": "web", "url": "http://x"})
    state = after(AgentInitialized(result={"agentCapabilities": {"mcpCapabilities": {"sse": True}}}))
    assert acp_calls.mcp_servers(agent(mcp_servers=short), state) == [
        {"name": "files", "command": "mcp-files", "args": [], "env": []},
        {"type": "sse", "name": "web", "url": "http://x", "headers": []},
    ]


def test_a_permission_is_answered_with_the_option_or_withdrawn() -> None:
    assert acp_calls.permission_result("yes") == {"outcome": {"outcome": "selected", "optionId": "yes"}}
    assert acp_calls.permission_result(None) == {"outcome": {"outcome": "cancelled"}}


def test_a_question_is_answered_in_the_words_of_the_protocol() -> None:
    assert acp_calls.question_result("accepted", {"a": 1}) == {"action": "accept", "content": {"a": 1}}
    assert acp_calls.question_result("accepted", ["no form"]) == {"action": "accept", "content": {}}
    assert acp_calls.question_result("declined") == {"action": "decline"}
    assert acp_calls.question_result("cancelled") == {"action": "cancel"}


def test_withdrawing_answers_every_open_question_and_nothing_else() -> None:
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


def test_a_reply_says_which_request_it_closes() -> None:
    reply = acp_calls.OutgoingReply(
        rpc_id=3, method="m", fault=acp_calls.ErrorReply(-32000, "no", {"x": 1}), id="w.1.5"
    )
    assert reply.fact(9) == ReplySent(n=9, method="m", id="w.1.5")
    error = {"code": -32000, "message": "no", "data": {"x": 1}}
    assert json.loads(reply.line(9)) == {"jsonrpc": "2.0", "id": 3, "error": error}
