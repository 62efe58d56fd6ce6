"""Every message of an agent comes to what it means, and none is dropped because it is odd."""

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
def test_what_we_have_no_word_for_is_kept_as_it_was_said(update: dict[str, Any]) -> None:
    assert fact_of_update(update) == UnknownUpdate(update=update)


def test_updates_of_another_session_are_kept_apart() -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": TEXT}
    reading = read({"method": "session/update", "params": {"sessionId": "child", "update": update}}, IN_TURN)
    assert reading.facts == [UnknownUpdate(update=update, acp_session_id="child")]


def test_updates_before_the_answer_to_session_new_are_ours() -> None:
    waiting: list[Fact] = [*READY, RequestSent(n=2, method="session/new")]
    update = {"sessionUpdate": "current_mode_update", "currentModeId": "x"}
    reading = read({"method": "session/update", "params": {"sessionId": "new", "update": update}}, waiting)
    assert reading.facts == [ModeChanged(mode_id="x")]
    assert read({"method": "session/update", "params": {"update": update}}, []).facts == [
        ModeChanged(mode_id="x")
    ]


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_what_was_said_before_is_not_told_again_while_a_session_is_taken_up(method: str) -> None:
    waiting: list[Fact] = [*READY, RequestSent(n=2, method=method, params={"sessionId": "s"})]
    assert read_update({"sessionUpdate": "agent_message_chunk", "content": TEXT}, waiting).ignored
    assert read_update({"sessionUpdate": "tool_call", "toolCallId": "t"}, waiting).ignored
    commands = {"sessionUpdate": "available_commands_update", "availableCommands": []}
    assert read_update(commands, waiting).facts == [CommandsAvailable(commands=[])]


@pytest.mark.parametrize("late", [True, False])
def test_history_that_comes_after_loading_is_no_news_where_it_is_known_to_come_late(late: bool) -> None:
    agent = replace(AGENT, quirks=AgentQuirks(late_history=late))
    said: dict[str, Any] = {"sessionUpdate": "agent_message_chunk", "content": TEXT}
    assert (read_update(said, LOADED, agent).ignored is not None) is late
    assert read_update(said, [*LOADED, TurnStart(prompt_id="p")], agent).chunk is not None
    commands = {"sessionUpdate": "available_commands_update", "availableCommands": []}
    assert read_update(commands, LOADED, agent).facts == [CommandsAvailable(commands=[])]


def test_a_run_that_began_a_session_has_no_history_to_repeat() -> None:
    agent = replace(AGENT, quirks=AgentQuirks(late_history=True))
    said: dict[str, Any] = {"sessionUpdate": "agent_message_chunk", "content": TEXT}
    resumed = [*READY, AgentSession(acp_session_id="s", how="resume")]
    for facts in (READY, resumed):
        assert read_update(said, facts, agent).ignored is None


def test_geminis_mode_text_is_a_change_of_mode() -> None:
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


def test_empty_text_says_nothing() -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": ""}}
    assert read_update(update, IN_TURN).ignored == "no text in it"


def test_a_permission_is_known_by_its_place_in_the_stream_and_waits() -> None:
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


def test_a_permission_that_names_only_a_tool_call_shows_what_is_known_of_it() -> None:
    known = ToolCall(call={"toolCallId": "t", "title": "rm -rf", "kind": "execute", "status": "in_progress"})
    reading = read(ask("session/request_permission", {"toolCall": {"toolCallId": "t"}}), [*IN_TURN, known])
    permission = reading.facts[-1]
    assert isinstance(permission, Permission)
    assert permission.tool_call["title"] == "rm -rf"
    assert set(permission.announced) == {"title", "kind", "status"}
    assert permission.options == []


def test_what_a_permission_says_itself_was_not_only_announced() -> None:
    known = ToolCall(call={"toolCallId": "t", "title": "look", "kind": "read"})
    call = {"toolCallId": "t", "kind": "delete", "title": None}
    permission = read(ask("session/request_permission", {"toolCall": call}), [*IN_TURN, known]).facts[-1]
    assert isinstance(permission, Permission)
    assert (permission.tool_call["kind"], permission.tool_call["title"]) == ("delete", "look")
    assert set(permission.announced) == {"title", "status"}


@pytest.mark.parametrize("params", [None, [], {"toolCall": 5, "options": "x"}])
def test_a_permission_that_makes_no_sense_is_a_permission_all_the_same(params: Any) -> None:
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


def test_a_question_of_nonsense_is_an_empty_question() -> None:
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
def test_a_question_taken_back_by_the_agent_is_cancelled_and_answered(method: str) -> None:
    other: list[Fact] = [RequestReceived(id="other", rpc_id=7, method="terminal/wait_for_exit")]
    asked = read(ask(method, {"toolCall": {"toolCallId": "t"}}, id=9), IN_TURN).facts
    facts = [*IN_TURN, *other, *asked]

    def taken_back(rpc_id: int) -> ParsedMessage:
        return read({"method": "$/cancel_request", "params": {"requestId": rpc_id}}, facts)

    (fact,) = taken_back(9).facts
    assert isinstance(fact, Permission | Question)
    assert (fact.id, fact.status, fact.by) == ("w.3.100", "cancelled", "agent")
    fault = ErrorReply(-32800, "cancelled")
    assert taken_back(9).replies == [OutgoingReply(rpc_id=9, method=method, fault=fault, id="w.3.100")]
    work = taken_back(7)
    assert (work.facts, work.replies) == (
        [],
        [OutgoingReply(rpc_id=7, method="terminal/wait_for_exit", fault=fault, id="other")],
    )
    assert taken_back(8) == ParsedMessage(ignored="takes back a question that is not open")


@pytest.mark.parametrize(
    "method",
    ["fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output", "terminal/kill"],
)
def test_work_with_files_and_terminals_is_a_task_known_by_its_place(method: str) -> None:
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
def test_a_request_nobody_knows_is_refused_at_once_and_kept(method: str) -> None:
    reading = read(ask(method, {"x": 1}, id="q"), IN_TURN)
    assert b'"code":-32601' in reading.replies[0].line(5)
    assert b'"id":"q"' in reading.replies[0].line(5)
    assert reading.facts == [UnknownUpdate(update={"id": "q", "method": method, "params": {"x": 1}})]


def test_an_agent_that_asks_on_and_on_is_refused() -> None:
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
def test_what_is_not_offered_is_refused(method: str) -> None:
    bare = AgentDefinition(
        id="b", name="B", kind="acp", command=("b",), offer=OfferedCapabilities(fs=False, terminal=False)
    )
    reading = read(ask(method, {}), IN_TURN, bare)
    assert reading.task is None
    assert b'"code":-32601' in reading.replies[0].line(1)


def test_a_notification_nobody_knows_is_kept() -> None:
    message = {"method": "_claude/extra", "params": {"x": 1}}
    assert read(message, IN_TURN).facts == [UnknownUpdate(update=message)]


def test_the_answer_to_a_prompt_ends_the_turn_with_what_it_used() -> None:
    usage = {"inputTokens": 5}
    reading = read({"id": 2, "result": {"stopReason": "max_tokens", "usage": usage}}, IN_TURN)
    assert reading.facts == [
        RequestAnswered(n=2, method="session/prompt"),
        Usage(turn=usage),
        TurnEnd(stop_reason="max_tokens"),
    ]


@pytest.mark.parametrize("result", [None, {}, {"stopReason": 5}, "done"])
def test_a_turn_that_ends_without_a_reason_ends(result: Any) -> None:
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
def test_a_turn_that_fails_says_why(error: dict[str, Any], text: str) -> None:
    reading = read({"id": 2, "error": error}, IN_TURN)
    assert reading.facts[-1] == TurnEnd(stop_reason="error", error=text)


def test_an_error_after_cancel_is_a_cancelled_turn() -> None:
    cancelling: list[Fact] = [*IN_TURN, NoticeSent(n=3, method="session/cancel")]
    reading = read({"id": 2, "error": {"code": -32603, "message": "x"}}, cancelling)
    assert reading.facts[-1] == TurnEnd(stop_reason="cancelled")


def test_what_a_turn_leaves_open_is_closed_with_it() -> None:
    asked = read(ask("session/request_permission", {"toolCall": {"toolCallId": "t"}}, id=9), IN_TURN).facts
    reading = read({"id": 2, "result": {"stopReason": "cancelled"}}, [*IN_TURN, *asked])
    told = [fact.to_data() for fact in reading.facts]
    assert [each["status"] for each in told if "status" in each] == ["cancelled", "cancelled"]
    assert [reply.id for reply in reading.replies] == ["w.3.100"]
    assert isinstance(reading.facts[-1], TurnEnd)


def test_a_tool_may_go_on_after_a_turn_that_ended_well() -> None:
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
def test_an_answer_tells_what_it_is_for(method: str, params: Any, result: Any, expected: Fact) -> None:
    reading = read({"id": 5, "result": result}, [RequestSent(n=5, method=method, params=params)])
    assert reading.facts == [RequestAnswered(n=5, method=method), expected]


def test_an_option_set_without_the_new_list_is_changed_in_the_old_one() -> None:
    options = [{"id": "c", "currentValue": "old"}, {"id": "d", "currentValue": "d"}]
    facts: list[Fact] = [
        AgentSession(acp_session_id="s", how="new", config_options=options),
        RequestSent(n=5, method="session/set_config_option", params={"configId": "c", "value": True}),
    ]
    changed = [{"id": "c", "currentValue": True}, {"id": "d", "currentValue": "d"}]
    assert read({"id": 5, "result": {}}, facts).facts[-1] == ConfigChanged(config_options=changed)


@pytest.mark.parametrize("method", ["initialize", "session/new"])
def test_a_handshake_answered_with_nothing_is_an_error(method: str) -> None:
    (answered,) = read({"id": 5, "result": [1]}, [RequestSent(n=5, method=method)]).facts
    message = f"{method} was answered without what it is for"
    error = {"code": -32603, "message": message, "data": [1]}
    assert answered == RequestAnswered(n=5, method=method, error=error)


@pytest.mark.parametrize("id", ["2", 2, None])
def test_an_answer_finds_its_request_whatever_became_of_the_number(id: Any) -> None:
    assert read({"id": id, "result": {"stopReason": "end_turn"}}, IN_TURN).facts[-1] == TurnEnd(
        stop_reason="end_turn"
    )


def test_an_answer_to_nothing_is_kept() -> None:
    (fact,) = read({"id": 77, "result": {"x": 1}}, IN_TURN).facts
    assert fact == Diagnostic(text="an answer to no request of ours", data={"id": 77, "result": {"x": 1}})
    error = {"code": 5, "message": "no", "data": [1]}
    (fact,) = read({"id": 77, "error": error}, IN_TURN).facts
    assert fact == Diagnostic(text="an answer to no request of ours", data={"id": 77, "error": error})


def test_noise_and_lines_left_out_are_diagnostics() -> None:
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
def test_whatever_comes_comes_to_something_and_folds(messages: list[Any], loading: bool) -> None:
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
