"""The facts of a conversation have the documented fields, and their fold gives what a new process needs."""

import json
from typing import Any

import msgspec
import pytest

from bullpen.domain.conversation import (
    AgentInitialized,
    AgentMessage,
    AgentSession,
    AgentThought,
    CommandsAvailable,
    ConfigChanged,
    Diagnostic,
    FileRead,
    FileWrite,
    ModeChanged,
    ModelChanged,
    NoticeSent,
    Permission,
    Plan,
    Question,
    ReplySent,
    RequestAnswered,
    RequestReceived,
    RequestSent,
    ToolCall,
    ToolCallUpdate,
    TurnEnd,
    TurnStart,
    UnknownUpdate,
    Usage,
    UserPrompt,
    request_id,
)
from bullpen.domain.conversation_state import Conversation, OpenTextBlock, fold_conversation
from bullpen.domain.events import (
    Event,
    Fact,
    Unknown,
    WorkerExited,
    WorkerFailed,
    WorkerSpawning,
    WorkerTerminated,
    read_fact,
)
from bullpen.domain.ids import is_safe_id

OPTIONS = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
ASKED = Permission(id="w.1.5", tool_call={"toolCallId": "t"}, options=OPTIONS, status="pending")


def after(*facts: Fact, state: Conversation | None = None) -> Conversation:
    state = state or Conversation()
    for seq, fact in enumerate(facts, 1):
        state = fold_conversation(state, Event(seq, seq * 10, fact, "w", "w"))
    return state


@pytest.mark.parametrize(
    ("fact", "type", "data"),
    [
        (
            UserPrompt(text="hi", prompt_id="p"),
            "user_prompt",
            {"text": "hi", "promptId": "p", "imageIds": [], "sender": None},
        ),
        (AgentMessage(text="x", partial=True), "agent_message", {"text": "x", "partial": True}),
        (
            AgentThought(text="", partial=False, message_id="m"),
            "agent_thought",
            {"text": "", "partial": False, "messageId": "m"},
        ),
        (ToolCall(call={"toolCallId": "t", "x": [1]}), "tool_call", {"toolCallId": "t", "x": [1]}),
        (ToolCallUpdate(call={}), "tool_call_update", {}),
        (Plan(entries=[{"content": "x"}]), "plan", {"entries": [{"content": "x"}]}),
        (
            ASKED,
            "permission",
            {"id": "w.1.5", "toolCall": {"toolCallId": "t"}, "options": OPTIONS, "status": "pending"},
        ),
        (
            Permission(id="i", tool_call={}, options=[], status="selected", option_id="y", by="me"),
            "permission",
            {"id": "i", "toolCall": {}, "options": [], "status": "selected", "optionId": "y", "by": "me"},
        ),
        (FileRead(path="/a", size=3), "file_read", {"path": "/a", "size": 3}),
        (FileWrite(path="/a", size=3), "file_write", {"path": "/a", "size": 3}),
        (TurnStart(prompt_id="p"), "turn_start", {"promptId": "p"}),
        (TurnEnd(stop_reason="end_turn"), "turn_end", {"stopReason": "end_turn"}),
        (
            TurnEnd(stop_reason="error", error="no model"),
            "turn_end",
            {"stopReason": "error", "error": "no model"},
        ),
        (RequestSent(n=3, method="initialize"), "request_sent", {"n": 3, "method": "initialize"}),
        (
            RequestReceived(id="i", rpc_id="u", method="m"),
            "request_received",
            {"id": "i", "rpcId": "u", "method": "m"},
        ),
        (
            AgentSession(acp_session_id="s", how="new"),
            "agent_session",
            {"acpSessionId": "s", "how": "new"},
        ),
        (Usage(used=1, size=2), "usage", {"used": 1, "size": 2}),
        (Diagnostic(text="x"), "diagnostic", {"text": "x"}),
    ],
)
def test_a_fact_has_the_documented_fields(fact: Fact, type: str, data: Any) -> None:
    assert fact.type == type
    assert json.loads(json.dumps(fact.to_data())) == data
    assert read_fact(type, data) == fact


def test_data_of_a_tool_call_that_is_not_an_object_is_kept_as_unknown() -> None:
    assert read_fact("tool_call", [1]) == Unknown(name="tool_call", data=[1])


def test_a_request_id_contains_its_offset_and_fits_into_a_path() -> None:
    id = request_id("3f0f5b4e-7a52-4e5b-9d0e-6a1c2b3d4e5f", 12, 1 << 50)
    assert id == f"3f0f5b4e-7a52-4e5b-9d0e-6a1c2b3d4e5f.12.{1 << 50}"
    assert is_safe_id(id)


def test_lines_are_counted_so_that_the_next_number_is_known() -> None:
    state = after(
        RequestSent(n=1, method="initialize"),
        NoticeSent(n=2, method="session/cancel"),
        ReplySent(n=3, method="fs/read_text_file"),
    )
    assert state.traffic.next_n == 4


def test_requests_are_in_flight_until_they_are_answered() -> None:
    sent = after(RequestSent(n=1, method="session/load", params={"sessionId": "s"}))
    assert sent.traffic.calls[1].params == {"sessionId": "s"}
    assert sent.replaying
    done = after(RequestAnswered(n=1, method="session/load"), state=sent)
    assert done.traffic.calls == {}
    assert not done.replaying


def test_a_permission_stays_open_until_it_is_answered() -> None:
    received = RequestReceived(id="w.1.5", rpc_id="u", method="session/request_permission")
    asked = after(received, ASKED)
    assert asked.asking
    assert asked.permissions["w.1.5"].since == 20
    assert asked.traffic.asks["w.1.5"].rpc_id == "u"
    answered = after(
        Permission(id="w.1.5", tool_call={}, options=[], status="selected", option_id="y"),
        ReplySent(n=1, method="session/request_permission", id="w.1.5"),
        state=asked,
    )
    assert not answered.asking
    assert answered.traffic.asks == {}


def test_a_form_is_open_until_it_is_accepted_declined_or_cancelled() -> None:
    asked = after(Question(id="q", message="?", status="pending", schema={}))
    assert list(asked.questions) == ["q"]
    assert not after(Question(id="q", message="?", status="declined"), state=asked).asking


def test_a_turn_is_open_from_start_to_end_and_records_that_it_is_being_cancelled() -> None:
    running = after(TurnStart(prompt_id="p"), ToolCall(call={"toolCallId": "t"}))
    assert running.turn is not None
    assert not running.turn.cancelling
    stopping = after(NoticeSent(n=1, method="session/cancel"), state=running)
    assert stopping.turn is not None
    assert stopping.turn.cancelling
    ended = after(TurnEnd(stop_reason="cancelled"), state=stopping)
    assert (ended.turn, ended.tools) == (None, {})


def test_a_text_block_is_open_until_its_last_piece() -> None:
    open_text = after(AgentMessage(text="a", partial=True, message_id="m"))
    assert open_text.block == OpenTextBlock("agent_message", "m")
    assert after(AgentMessage(text="", partial=False, message_id="m"), state=open_text).block is None


def test_a_permission_opens_a_tool_call_that_was_never_announced() -> None:
    state = after(ASKED, ToolCallUpdate(call={"toolCallId": "t", "title": "x", "status": "in_progress"}))
    assert state.tools == {"t": {"toolCallId": "t", "title": "x", "status": "in_progress"}}


def test_an_agent_has_the_capabilities_that_it_announced() -> None:
    capabilities = {
        "loadSession": True,
        "sessionCapabilities": {"resume": {}, "list": None},
        "promptCapabilities": 5,
    }
    state = after(AgentInitialized(result={"agentCapabilities": capabilities}))
    assert state.has_capability("loadSession")
    assert state.has_capability("sessionCapabilities", "resume")
    assert not state.has_capability("sessionCapabilities", "list")
    assert not state.has_capability("promptCapabilities", "image")
    assert not Conversation().has_capability("loadSession")


def test_the_settings_of_a_session_follow_its_updates() -> None:
    modes = {"currentModeId": "a", "availableModes": [{"id": "a"}, {"id": "b"}]}
    state = after(
        AgentSession(acp_session_id="s", how="new", modes=modes, models={"currentModelId": "x"}),
        ModeChanged(mode_id="b"),
        ModelChanged(model_id="y"),
        ConfigChanged(config_options=[{"id": "o"}]),
        CommandsAvailable(commands=[{"name": "c"}]),
    )
    assert state.session is not None
    assert state.session.modes == {**modes, "currentModeId": "b"}
    assert state.session.models == {"currentModelId": "y"}
    assert (state.session.config_options, state.session.commands) == ([{"id": "o"}], [{"name": "c"}])


def test_settings_that_come_before_the_session_are_kept() -> None:
    early = after(CommandsAvailable(commands=[{"name": "c"}]))
    assert early.acp_session_id is None
    made = after(AgentSession(acp_session_id="s", how="new"), state=early)
    assert made.acp_session_id == "s"
    assert made.session is not None
    assert made.session.commands == [{"name": "c"}]


def test_a_loaded_session_keeps_its_creation_time() -> None:
    old = after(AgentSession(acp_session_id="s", how="new"))
    again = after(TurnStart(prompt_id="p"), AgentSession(acp_session_id="s", how="load"), state=old)
    assert again.session is not None
    assert again.session.since == 10


def test_usage_is_merged_from_its_updates() -> None:
    state = after(Usage(used=1, size=2), Usage(turn={"in": 3}), Usage(used=5, size=2, cost={"amount": 1}))
    assert state.usage == Usage(used=5, size=2, cost={"amount": 1}, turn={"in": 3})


@pytest.mark.parametrize(
    "end",
    [
        WorkerExited(exit_code=0),
        WorkerFailed(error="crashed"),
        WorkerTerminated(reason="user_request"),
        WorkerSpawning(worker_type="agent", name="w", run=2, workspace="/p"),
    ],
)
def test_the_end_of_a_process_closes_what_was_in_flight_and_keeps_the_session(end: Fact) -> None:
    state = after(
        AgentInitialized(result={}),
        AgentSession(acp_session_id="s", how="new"),
        TurnStart(prompt_id="p"),
        RequestSent(n=1, method="session/prompt"),
        ASKED,
        AgentMessage(text="a", partial=True),
        end,
    )
    assert state == Conversation(session=state.session)
    assert state.acp_session_id == "s"


def test_a_conversation_reads_back_from_its_saved_form() -> None:
    state = after(
        AgentInitialized(result={"agentCapabilities": {}}),
        AgentSession(acp_session_id="s", how="new", config_options=[]),
        TurnStart(prompt_id="p"),
        RequestSent(n=7, method="session/prompt"),
        RequestReceived(id="w.1.5", rpc_id="u", method="session/request_permission"),
        ASKED,
        Diagnostic(text="x", skipping=12),
        UnknownUpdate(update={}),
    )
    assert msgspec.json.decode(msgspec.json.encode(state), type=Conversation) == state
