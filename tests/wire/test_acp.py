"""Every message of an agent gives facts, tasks or replies, and no unusual message is lost."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bullpen.domain.agents import AgentDefinition, AgentQuirks, OfferedCapabilities
from bullpen.domain.conversation import (
    AgentContent,
    AgentInitialized,
    AgentSession,
    CommandsAvailable,
    ConfigChanged,
    Diagnostic,
    ModeChanged,
    ModelChanged,
    NoticeSent,
    Permission,
    Plan,
    Question,
    RequestAnswered,
    RequestReceived,
    RequestSent,
    SessionInfo,
    ToolCall,
    ToolCallUpdate,
    TurnEnd,
    TurnStart,
    UnknownUpdate,
    Usage,
    UserEcho,
)
from bullpen.domain.conversation_state import Conversation, fold_conversation
from bullpen.domain.events import Event, Fact
from bullpen.wire.acp import MAX_PENDING_REQUESTS, AcpReader, ParsedMessage, fact_of_update
from bullpen.wire.acp_calls import ErrorReply, OutgoingReply
from bullpen.wire.acp_joiner import TextChunk
from bullpen.wire.jsonrpc import JsonRpcPeer, LineTooLong, LongLineEnd

AGENT = AgentDefinition(id="a", name="A", kind="acp", command=("a",))
READY: list[Fact] = [
    RequestSent(n=1, method="initialize"),
    RequestAnswered(n=1, method="initialize"),
    AgentInitialized(result={}),
    AgentSession(acp_session_id="s", how="new"),
]
LOADED: list[Fact] = [
    *READY,
    RequestSent(n=2, method="session/load"),
    RequestAnswered(n=2, method="session/load"),
    AgentSession(acp_session_id="s", how="load"),
]
IN_TURN: list[Fact] = [*READY, TurnStart(prompt_id="p"), RequestSent(n=2, method="session/prompt")]


def after(facts: list[Fact]) -> Conversation:
    state = Conversation()
    for seq, fact in enumerate(facts, 1):
        state = fold_conversation(state, Event(seq, seq, fact, "w", "w"))
    return state


def read(message: dict[str, Any], facts: list[Fact], agent: AgentDefinition = AGENT) -> ParsedMessage:
    (line,) = JsonRpcPeer(100).feed(json.dumps(message).encode() + b"\n")
    return AcpReader("w", 3, agent).read(line, after(facts))


def read_update(update: dict[str, Any], facts: list[Fact], agent: AgentDefinition = AGENT) -> ParsedMessage:
    return read({"method": "session/update", "params": {"sessionId": "s", "update": update}}, facts, agent)


def ask(method: str, params: Any, id: Any = 0) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


TEXT = {"type": "text", "text": "hello"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ({"sessionUpdate": "agent_message_chunk", "content": TEXT}, TextChunk("agent_message", "hello")),
        (
            {"sessionUpdate": "agent_thought_chunk", "content": TEXT, "messageId": "m"},
            TextChunk("agent_thought", "hello", "m"),
        ),
        (
            {"sessionUpdate": "agent_message_chunk", "content": IMAGE, "messageId": "m"},
            AgentContent(content=IMAGE, message_id="m"),
        ),
        (
            {"sessionUpdate": "agent_thought_chunk", "content": IMAGE},
            AgentContent(content=IMAGE, thought=True),
        ),
        ({"sessionUpdate": "user_message_chunk", "content": TEXT}, UserEcho(content=TEXT)),
        ({"sessionUpdate": "plan", "entries": [{"content": "x"}]}, Plan(entries=[{"content": "x"}])),
        (
            {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "x"}]},
            CommandsAvailable(commands=[{"name": "x"}]),
        ),
        ({"sessionUpdate": "current_mode_update", "currentModeId": "plan"}, ModeChanged(mode_id="plan")),
        (
            {"sessionUpdate": "config_option_update", "configOptions": [{"id": "x"}]},
            ConfigChanged(config_options=[{"id": "x"}]),
        ),
        ({"sessionUpdate": "session_info_update", "title": "T"}, SessionInfo(info={"title": "T"})),
        (
            {"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": {"amount": 0.5}},
            Usage(used=1, size=2, cost={"amount": 0.5}),
        ),
    ],
)
def test_an_update_is_a_fact_or_a_piece_of_text(update: dict[str, Any], expected: Fact | TextChunk) -> None:
    assert fact_of_update(update) == expected


@pytest.mark.parametrize(
    "update",
    [
        {"sessionUpdate": "tool_call", "toolCallId": "t", "status": "completed", "kind": "teleport"},
        {"sessionUpdate": "tool_call", "toolCallId": "t"},
        {"sessionUpdate": "tool_call", "content": "nonsense"},
    ],
)
def test_a_tool_call_is_kept_in_the_agents_own_words(update: dict[str, Any]) -> None:
    assert fact_of_update(update) == ToolCall(call=update)
    later = {**update, "sessionUpdate": "tool_call_update"}
    assert fact_of_update(later) == ToolCallUpdate(call=later)


@pytest.mark.parametrize(
    "update",
    [
        {"sessionUpdate": "plan_update", "plan": {"id": "1"}},
        {"sessionUpdate": "notice", "text": "x"},
        {"sessionUpdate": "plan", "entries": "not a list"},
        {"sessionUpdate": "usage_update", "used": "many"},
        {"sessionUpdate": "usage_update", "used": True, "size": 5},
        {"sessionUpdate": "agent_message_chunk", "content": None},
        {"sessionUpdate": 7},
        {},
    ],
)
def test_an_unknown_or_invalid_update_is_kept_unchanged(update: dict[str, Any]) -> None:
    assert fact_of_update(update) == UnknownUpdate(update=update)


def test_updates_of_another_session_are_kept_apart() -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": TEXT}
    reading = read({"method": "session/update", "params": {"sessionId": "child", "update": update}}, IN_TURN)
    assert reading.facts == [UnknownUpdate(update=update, acp_session_id="child")]


def test_updates_before_the_answer_to_session_new_belong_to_the_new_session() -> None:
    pending: list[Fact] = [*READY, RequestSent(n=2, method="session/new")]
    update = {"sessionUpdate": "current_mode_update", "currentModeId": "x"}
    reading = read({"method": "session/update", "params": {"sessionId": "new", "update": update}}, pending)
    assert reading.facts == [ModeChanged(mode_id="x")]
    assert read({"method": "session/update", "params": {"update": update}}, []).facts == [
        ModeChanged(mode_id="x")
    ]


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_history_is_ignored_while_a_session_is_loaded_or_resumed(method: str) -> None:
    waiting: list[Fact] = [*READY, RequestSent(n=2, method=method, params={"sessionId": "s"})]
    assert read_update({"sessionUpdate": "agent_message_chunk", "content": TEXT}, waiting).ignored
    assert read_update({"sessionUpdate": "tool_call", "toolCallId": "t"}, waiting).ignored
    commands = {"sessionUpdate": "available_commands_update", "availableCommands": []}
    assert read_update(commands, waiting).facts == [CommandsAvailable(commands=[])]


@pytest.mark.parametrize("late", [True, False])
def test_late_history_after_loading_is_ignored_only_with_the_late_history_quirk(late: bool) -> None:
    agent = replace(AGENT, quirks=AgentQuirks(late_history=late))
    chunk_update: dict[str, Any] = {"sessionUpdate": "agent_message_chunk", "content": TEXT}
    assert (read_update(chunk_update, LOADED, agent).ignored is not None) is late
    assert read_update(chunk_update, [*LOADED, TurnStart(prompt_id="p")], agent).chunk is not None
    commands = {"sessionUpdate": "available_commands_update", "availableCommands": []}
    assert read_update(commands, LOADED, agent).facts == [CommandsAvailable(commands=[])]


def test_late_history_is_ignored_only_after_loading() -> None:
    agent = replace(AGENT, quirks=AgentQuirks(late_history=True))
    chunk_update: dict[str, Any] = {"sessionUpdate": "agent_message_chunk", "content": TEXT}
    resumed = [*READY, AgentSession(acp_session_id="s", how="resume")]
    for facts in (READY, resumed):
        assert read_update(chunk_update, facts, agent).ignored is None


def test_the_mode_text_of_gemini_is_a_change_of_mode() -> None:
    gemini = AgentDefinition(
        id="g",
        name="G",
        kind="acp",
        command=("g",),
        quirks=AgentQuirks(mode_text=r"\[MODE_UPDATE\] (\S+)\s*"),
    )
    text = {"type": "text", "text": "[MODE_UPDATE] plan\n"}
    update = {"sessionUpdate": "agent_message_chunk", "content": text}
    assert read_update(update, IN_TURN, gemini).facts == [ModeChanged(mode_id="plan")]
    assert read_update(update, IN_TURN).chunk == TextChunk("agent_message", "[MODE_UPDATE] plan\n")


def test_empty_text_is_ignored() -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": ""}}
    assert read_update(update, IN_TURN).ignored == "no text in it"


def test_the_id_of_a_permission_is_its_offset_and_it_stays_pending() -> None:
    options = [{"optionId": "any text", "kind": "allow_once", "name": "Yes"}]
    call = {"toolCallId": "t", "title": "rm"}
    message = ask("session/request_permission", {"toolCall": call, "options": options}, id="uuid")
    reading = read(message, IN_TURN)
    assert reading.facts == [
        RequestReceived(id="w.3.100", rpc_id="uuid", method="session/request_permission"),
        Permission(id="w.3.100", tool_call=call, options=options, status="pending"),
    ]
    assert reading.closes_text
    assert not reading.replies


def test_a_permission_is_completed_with_the_announced_tool_call() -> None:
    known = ToolCall(call={"toolCallId": "t", "title": "rm -rf", "kind": "execute", "status": "in_progress"})
    reading = read(ask("session/request_permission", {"toolCall": {"toolCallId": "t"}}), [*IN_TURN, known])
    permission = reading.facts[-1]
    assert isinstance(permission, Permission)
    assert permission.tool_call["title"] == "rm -rf"
    assert set(permission.announced) == {"title", "kind", "status"}
    assert permission.options == []


def test_fields_in_the_permission_itself_are_not_marked_as_announced() -> None:
    known = ToolCall(call={"toolCallId": "t", "title": "look", "kind": "read"})
    call = {"toolCallId": "t", "kind": "delete", "title": None}
    permission = read(ask("session/request_permission", {"toolCall": call}), [*IN_TURN, known]).facts[-1]
    assert isinstance(permission, Permission)
    assert (permission.tool_call["kind"], permission.tool_call["title"]) == ("delete", "look")
    assert set(permission.announced) == {"title", "status"}


@pytest.mark.parametrize("params", [None, [], {"toolCall": 5, "options": "x"}])
def test_an_invalid_permission_is_still_a_permission(params: Any) -> None:
    permission = read(ask("session/request_permission", params), IN_TURN).facts[-1]
    assert permission == Permission(id="w.3.100", tool_call={}, options=[], status="pending")


def test_a_permission_asked_after_cancel_is_answered_at_once() -> None:
    cancelling: list[Fact] = [*IN_TURN, NoticeSent(n=3, method="session/cancel")]
    reading = read(ask("session/request_permission", {"toolCall": {"toolCallId": "t"}}), cancelling)
    permission = reading.facts[-1]
    assert isinstance(permission, Permission)
    assert (permission.status, permission.by) == ("cancelled", "cancel")
    assert [reply.result for reply in reading.replies] == [{"outcome": {"outcome": "cancelled"}}]


def test_a_form_is_a_question() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"sessionId": "s", "mode": "form", "message": "Who?", "requestedSchema": schema}
    reading = read(ask("elicitation/create", params), IN_TURN)
    assert reading.facts[-1] == Question(id="w.3.100", message="Who?", status="pending", schema=schema)


def test_an_invalid_question_is_an_empty_question() -> None:
    params = {"message": 5, "url": ["x"], "requestedSchema": 7}
    assert read(ask("elicitation/create", params), IN_TURN).facts[-1] == Question(
        id="w.3.100", message="", status="pending", schema=7
    )
    visit = read(ask("elicitation/create", {"url": "https://x"}), IN_TURN).facts[-1]
    assert visit == Question(id="w.3.100", message="", status="pending", url="https://x")


def test_a_form_asked_after_cancel_is_answered_at_once() -> None:
    cancelling: list[Fact] = [*IN_TURN, NoticeSent(n=3, method="session/cancel")]
    reading = read(ask("elicitation/create", {"message": "Who?"}, id="x"), cancelling)
    assert reading.facts == [
        RequestReceived(id="w.3.100", rpc_id="x", method="elicitation/create"),
        Question(id="w.3.100", message="Who?", status="cancelled", by="cancel"),
    ]
    result = {"action": "cancel"}
    assert reading.replies == [
        OutgoingReply(rpc_id="x", method="elicitation/create", result=result, id="w.3.100")
    ]


@pytest.mark.parametrize("method", ["session/request_permission", "elicitation/create"])
def test_a_request_withdrawn_by_the_agent_is_cancelled_and_answered(method: str) -> None:
    other: list[Fact] = [RequestReceived(id="other", rpc_id=7, method="terminal/wait_for_exit")]
    asked = read(ask(method, {"toolCall": {"toolCallId": "t"}}, id=9), IN_TURN).facts
    facts = [*IN_TURN, *other, *asked]

    def withdraw(rpc_id: int) -> ParsedMessage:
        return read({"method": "$/cancel_request", "params": {"requestId": rpc_id}}, facts)

    (fact,) = withdraw(9).facts
    assert isinstance(fact, Permission | Question)
    assert (fact.id, fact.status, fact.by) == ("w.3.100", "cancelled", "agent")
    fault = ErrorReply(-32800, "cancelled")
    assert withdraw(9).replies == [OutgoingReply(rpc_id=9, method=method, fault=fault, id="w.3.100")]
    task = withdraw(7)
    assert (task.facts, task.replies) == (
        [],
        [OutgoingReply(rpc_id=7, method="terminal/wait_for_exit", fault=fault, id="other")],
    )
    assert withdraw(8) == ParsedMessage(ignored="takes back a question that is not open")


@pytest.mark.parametrize(
    "method",
    ["fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output", "terminal/kill"],
)
def test_a_file_or_terminal_request_is_a_task_with_its_offset_as_id(method: str) -> None:
    task = read(ask(method, {"path": "/x"}, id=7), IN_TURN).task
    assert task is not None
    assert (task.id, task.rpc_id, task.method, task.params) == ("w.3.100", 7, method, {"path": "/x"})


def test_waiting_for_a_terminal_is_in_flight() -> None:
    reading = read(ask("terminal/wait_for_exit", {"terminalId": "t"}, id=7), IN_TURN)
    assert reading.task is not None
    received = RequestReceived(
        id="w.3.100", rpc_id=7, method="terminal/wait_for_exit", params={"terminalId": "t"}
    )
    assert reading.facts == [received]


@pytest.mark.parametrize("method", ["craft/drainMidTurnQueue", "_acme/ext", "session/unheard_of", ""])
def test_an_unknown_request_is_refused_and_kept(method: str) -> None:
    reading = read(ask(method, {"x": 1}, id="q"), IN_TURN)
    assert b'"code":-32601' in reading.replies[0].line(5)
    assert b'"id":"q"' in reading.replies[0].line(5)
    assert reading.facts == [UnknownUpdate(update={"id": "q", "method": method, "params": {"x": 1}})]


def test_a_request_beyond_the_limit_of_pending_requests_is_refused() -> None:
    waiting: list[Fact] = [
        RequestReceived(id=str(n), rpc_id=n, method="session/request_permission")
        for n in range(MAX_PENDING_REQUESTS)
    ]
    reading = read(ask("session/request_permission", {"toolCall": {}}), waiting)
    fault = ErrorReply(-32603, f"{MAX_PENDING_REQUESTS} of your requests wait already")
    assert [reply.fault for reply in reading.replies] == [fault]
    assert not any(isinstance(fact, Permission) for fact in reading.facts)
    assert not read(ask("session/request_permission", {"toolCall": {}}), waiting[1:]).replies


@pytest.mark.parametrize("method", ["fs/write_text_file", "terminal/create", "terminal/wait_for_exit"])
def test_a_request_for_a_capability_that_is_not_offered_is_refused(method: str) -> None:
    bare = AgentDefinition(
        id="b", name="B", kind="acp", command=("b",), offer=OfferedCapabilities(fs=False, terminal=False)
    )
    reading = read(ask(method, {}), IN_TURN, bare)
    assert reading.task is None
    assert b'"code":-32601' in reading.replies[0].line(1)


def test_an_unknown_notification_is_kept() -> None:
    message = {"method": "_claude/extra", "params": {"x": 1}}
    assert read(message, IN_TURN).facts == [UnknownUpdate(update=message)]


def test_the_answer_to_a_prompt_ends_the_turn_and_records_its_usage() -> None:
    usage = {"inputTokens": 5}
    reading = read({"id": 2, "result": {"stopReason": "max_tokens", "usage": usage}}, IN_TURN)
    assert reading.facts == [
        RequestAnswered(n=2, method="session/prompt"),
        Usage(turn=usage),
        TurnEnd(stop_reason="max_tokens"),
    ]


@pytest.mark.parametrize("result", [None, {}, {"stopReason": 5}, "done"])
def test_a_turn_without_a_valid_stop_reason_ends_as_unknown(result: Any) -> None:
    assert read({"id": 2, "result": result}, IN_TURN).facts[-1] == TurnEnd(stop_reason="unknown")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            {"code": -32603, "message": "Internal error", "data": {"details": "no model"}},
            "Internal error: no model",
        ),
        ({"code": 400, "message": "bad request"}, "bad request"),
        ({"code": -32603, "message": "Internal error", "data": "boom"}, "Internal error: boom"),
    ],
)
def test_a_failed_turn_has_the_message_of_its_error(error: dict[str, Any], text: str) -> None:
    reading = read({"id": 2, "error": error}, IN_TURN)
    assert reading.facts[-1] == TurnEnd(stop_reason="error", error=text)


def test_an_error_after_cancel_is_a_cancelled_turn() -> None:
    cancelling: list[Fact] = [*IN_TURN, NoticeSent(n=3, method="session/cancel")]
    reading = read({"id": 2, "error": {"code": -32603, "message": "x"}}, cancelling)
    assert reading.facts[-1] == TurnEnd(stop_reason="cancelled")


def test_open_permissions_and_tool_calls_are_closed_with_their_turn() -> None:
    asked = read(ask("session/request_permission", {"toolCall": {"toolCallId": "t"}}, id=9), IN_TURN).facts
    reading = read({"id": 2, "result": {"stopReason": "cancelled"}}, [*IN_TURN, *asked])
    closing_facts = [fact.to_data() for fact in reading.facts]
    assert [each["status"] for each in closing_facts if "status" in each] == ["cancelled", "cancelled"]
    assert [reply.id for reply in reading.replies] == ["w.3.100"]
    assert isinstance(reading.facts[-1], TurnEnd)


def test_a_tool_call_stays_open_after_a_turn_that_ended_normally() -> None:
    reading = read(
        {"id": 2, "result": {"stopReason": "end_turn"}}, [*IN_TURN, ToolCall(call={"toolCallId": "t"})]
    )
    assert not any(isinstance(fact, ToolCallUpdate) for fact in reading.facts)


@pytest.mark.parametrize(
    ("method", "params", "result", "expected"),
    [
        ("initialize", None, {"protocolVersion": 1}, AgentInitialized(result={"protocolVersion": 1})),
        (
            "session/new",
            None,
            {"sessionId": "x", "modes": {"m": 1}, "configOptions": []},
            AgentSession(acp_session_id="x", how="new", modes={"m": 1}, config_options=[]),
        ),
        ("session/load", {"sessionId": "s"}, None, AgentSession(acp_session_id="s", how="load")),
        ("session/resume", {"sessionId": "s"}, {}, AgentSession(acp_session_id="s", how="resume")),
        ("session/set_mode", {"modeId": "m"}, {}, ModeChanged(mode_id="m")),
        ("session/set_model", {"modelId": "m"}, None, ModelChanged(model_id="m")),
        (
            "session/set_config_option",
            {"configId": "c", "value": "v"},
            {"configOptions": [{"id": "c", "currentValue": "v"}]},
            ConfigChanged(config_options=[{"id": "c", "currentValue": "v"}]),
        ),
    ],
)
def test_the_answer_to_each_request_gives_its_fact(
    method: str, params: Any, result: Any, expected: Fact
) -> None:
    reading = read({"id": 5, "result": result}, [RequestSent(n=5, method=method, params=params)])
    assert reading.facts == [RequestAnswered(n=5, method=method), expected]


def test_an_option_set_without_a_new_list_is_changed_in_the_known_list() -> None:
    options = [{"id": "c", "currentValue": "old"}, {"id": "d", "currentValue": "d"}]
    facts: list[Fact] = [
        AgentSession(acp_session_id="s", how="new", config_options=options),
        RequestSent(n=5, method="session/set_config_option", params={"configId": "c", "value": True}),
    ]
    changed = [{"id": "c", "currentValue": True}, {"id": "d", "currentValue": "d"}]
    assert read({"id": 5, "result": {}}, facts).facts[-1] == ConfigChanged(config_options=changed)


@pytest.mark.parametrize("method", ["initialize", "session/new"])
def test_an_invalid_answer_in_the_handshake_is_an_error(method: str) -> None:
    (answered,) = read({"id": 5, "result": [1]}, [RequestSent(n=5, method=method)]).facts
    message = f"{method} was answered without what it is for"
    error = {"code": -32603, "message": message, "data": [1]}
    assert answered == RequestAnswered(n=5, method=method, error=error)


@pytest.mark.parametrize("id", ["2", 2, None])
def test_an_answer_finds_its_request_when_its_id_changed_its_type_or_is_missing(id: Any) -> None:
    assert read({"id": id, "result": {"stopReason": "end_turn"}}, IN_TURN).facts[-1] == TurnEnd(
        stop_reason="end_turn"
    )


def test_an_answer_to_no_request_is_kept_as_a_diagnostic() -> None:
    (fact,) = read({"id": 77, "result": {"x": 1}}, IN_TURN).facts
    assert fact == Diagnostic(text="an answer to no request of ours", data={"id": 77, "result": {"x": 1}})
    error = {"code": 5, "message": "no", "data": [1]}
    (fact,) = read({"id": 77, "error": error}, IN_TURN).facts
    assert fact == Diagnostic(text="an answer to no request of ours", data={"id": 77, "error": error})


def test_invalid_and_skipped_lines_are_diagnostics() -> None:
    reader, state = AcpReader("w", 1, AGENT), after(IN_TURN)
    (noise,) = JsonRpcPeer().feed(b"warning: something\n")
    assert reader.read(noise, state).facts[0].to_data()["text"] == "warning: something"
    (begun,) = reader.read(LineTooLong(start=10, end=99), state).facts
    (ended,) = reader.read(LongLineEnd(start=10, end=5000, size=4990), state).facts
    assert isinstance(begun, Diagnostic)
    assert isinstance(ended, Diagnostic)
    assert (begun.skipping, ended.skipped) == (10, 4990)
    assert after([*IN_TURN, begun]).traffic.skipping == 10
    assert after([*IN_TURN, begun, ended]).traffic.skipping is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner, max_size=2),
    max_leaves=4,
)
KINDS = [
    "agent_message_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "usage_update",
    "current_mode_update",
]
UPDATE = st.fixed_dictionaries(
    {"sessionUpdate": st.sampled_from(KINDS) | JSON},
    optional={
        "content": JSON,
        "entries": JSON,
        "toolCallId": st.sampled_from(["t", "u"]) | JSON,
        "status": st.sampled_from(["completed", "pending"]) | JSON,
        "_meta": JSON,
        "messageId": JSON,
        "currentModeId": JSON,
        "used": JSON,
        "size": JSON,
    },
)
METHODS = [
    "session/request_permission",
    "elicitation/create",
    "fs/read_text_file",
    "terminal/wait_for_exit",
    "x",
]
MESSAGE = st.one_of(
    UPDATE.map(lambda update: {"method": "session/update", "params": {"sessionId": "s", "update": update}}),
    st.fixed_dictionaries({"method": st.sampled_from(METHODS), "id": JSON, "params": JSON}),
    st.fixed_dictionaries({"id": st.sampled_from([1, 2, "2", None, 9]), "result": JSON}),
    st.fixed_dictionaries({"id": st.sampled_from([1, 2, None]), "error": JSON}),
    st.fixed_dictionaries({"method": JSON, "params": JSON}),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(messages=st.lists(MESSAGE, max_size=6), loading=st.booleans())
def test_every_message_has_a_result_that_can_be_folded(messages: list[Any], loading: bool) -> None:
    loads: list[Fact] = (
        [RequestSent(n=3, method="session/load", params={"sessionId": "s"})] if loading else []
    )
    state, reader, peer = after([*IN_TURN, *loads]), AcpReader("w", 1, AGENT), JsonRpcPeer()
    for line in peer.feed(b"".join(json.dumps(message).encode() + b"\n" for message in messages)):
        reading = reader.read(line, state)
        assert reading.facts or reading.chunk or reading.task or reading.replies or reading.ignored
        for fact in reading.facts:
            assert type(fact).from_data(json.loads(json.dumps(fact.to_data()))) == fact
            state = fold_conversation(state, Event(1, 1, fact, "w", "w"))
