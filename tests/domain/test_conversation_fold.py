"""Each fact changes certain fields of a conversation and nothing else."""

from typing import Any

import pytest
from msgspec.structs import asdict

from bullpen.domain.conversation import (
    AgentInitialized,
    AgentMessage,
    AgentSession,
    AgentThought,
    CommandsAvailable,
    ConfigChanged,
    ConversationReset,
    Diagnostic,
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
    Usage,
    UserEcho,
)
from bullpen.domain.conversation_state import (
    AcpSession,
    Conversation,
    OpenPermission,
    OpenQuestion,
    OpenTextBlock,
    PendingAgentRequest,
    PendingCall,
    RunTraffic,
    Turn,
    fold_conversation,
)
from bullpen.domain.events import Error, Event, Fact, WorkerExited, WorkerReady

PERMISSION = Permission(id="p", tool_call={"toolCallId": "old"}, options=[], status="pending")
QUESTION = Question(id="q", message="?", status="pending")
SESSION = AcpSession(
    id="s",
    since=3,
    modes={"currentModeId": "ask", "availableModes": []},
    models={"currentModelId": "big"},
    config_options=[{"id": "c"}],
    commands=[{"name": "help"}],
)
CALL = PendingCall(method="session/prompt", since=4, params={"a": 1})
ASK = PendingAgentRequest(rpc_id=9, method="terminal/wait_for_exit", since=5, params={"b": 2})
TRAFFIC = RunTraffic(sent=6, calls={2: CALL, 6: CALL}, asks={"w.1.5": ASK, "w.1.7": ASK}, skipping=70)
FULL = Conversation(
    agent={"agentCapabilities": {}},
    session=SESSION,
    turn=Turn(prompt_id="t", since=2),
    block=OpenTextBlock("agent_message", "m"),
    tools={"old": {"toolCallId": "old", "status": "pending"}},
    tool_messages={"old": 4},
    plan=["step"],
    permissions={
        "p": OpenPermission(fact=PERMISSION, since=5),
        "p2": OpenPermission(fact=PERMISSION, since=6),
    },
    questions={"q": OpenQuestion(fact=QUESTION, since=5), "q2": OpenQuestion(fact=QUESTION, since=6)},
    usage=Usage(used=1, size=2, cost=3, turn={"t": 4}),
    traffic=TRAFFIC,
    loaded=True,
    recap=True,
)
NOW = 99
KEPT_FIELDS = {"session", "plan", "usage", "recap"}  # that remain after the end of a process


def changes(fact: Fact, state: Conversation = FULL) -> dict[str, Any]:
    """Return the fields that differ after the fact, with their new values."""
    after = asdict(fold_conversation(state, Event(1, NOW, fact, "w", "w")))
    return {name: value for name, value in after.items() if value != getattr(state, name)}


def session(**more: Any) -> AcpSession:
    return AcpSession(**(asdict(SESSION) | more))


def traffic(**more: Any) -> RunTraffic:
    return RunTraffic(**(asdict(TRAFFIC) | more))


NEW_PERMISSION = Permission(id="n", tool_call={"toolCallId": "new"}, options=[], status="pending")
NEW_QUESTION = Question(id="n", message="!", status="pending")


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (
            AgentMessage(text="x", partial=True, message_id="n"),
            {"block": OpenTextBlock("agent_message", "n")},
        ),
        (AgentThought(text="x", partial=True), {"block": OpenTextBlock("agent_thought")}),
        (AgentMessage(text="x", partial=False), {"block": None}),
        (UserEcho(content="x"), {}),
        (Error(message="x"), {}),
        (WorkerReady(pid=1), {}),
        (
            ToolCall(call={"toolCallId": "new", "title": "ls"}),
            {
                "tools": FULL.tools | {"new": {"toolCallId": "new", "title": "ls", "status": "pending"}},
                "tool_messages": FULL.tool_messages | {"new": 1},
            },
        ),
        (
            ToolCallUpdate(call={"toolCallId": "old", "status": "completed"}),
            {"tools": {}, "tool_messages": {}},
        ),
        (Plan(entries=["other"]), {"plan": ["other"]}),
        (
            NEW_PERMISSION,
            {
                "permissions": FULL.permissions | {"n": OpenPermission(fact=NEW_PERMISSION, since=NOW)},
                "tools": FULL.tools | {"new": {"toolCallId": "new", "status": "pending"}},
            },
        ),
        (
            Permission(id="p", tool_call={"toolCallId": "x"}, options=[], status="selected"),
            {"permissions": {"p2": FULL.permissions["p2"]}},
        ),
        (NEW_QUESTION, {"questions": FULL.questions | {"n": OpenQuestion(fact=NEW_QUESTION, since=NOW)}}),
        (Question(id="q", message="?", status="declined"), {"questions": {"q2": FULL.questions["q2"]}}),
        (
            TurnStart(prompt_id="u"),
            {"turn": Turn(prompt_id="u", since=NOW), "block": None, "loaded": False, "recap": False},
        ),
        (TurnEnd(stop_reason="end_turn"), {"turn": None, "block": None, "tools": {}, "tool_messages": {}}),
        (Usage(used=5), {"usage": Usage(used=5, size=2, cost=3, turn={"t": 4})}),
        (Usage(size=0, cost={"x": 1}), {"usage": Usage(used=1, size=0, cost={"x": 1}, turn={"t": 4})}),
        (Usage(turn={}), {"usage": Usage(used=1, size=2, cost=3, turn={})}),
        (AgentInitialized(result={"x": 1}), {"agent": {"x": 1}}),
        (
            AgentSession(acp_session_id="s", how="resume", modes={"m": 1}, models={"n": 2}),
            {"session": session(modes={"m": 1}, models={"n": 2}, config_options=None), "loaded": False},
        ),
        (
            AgentSession(acp_session_id="s", how="load", config_options=[1]),
            {"session": session(modes=None, models=None, config_options=[1])},
        ),
        (
            AgentSession(acp_session_id="other", how="new", config_options=[1]),
            {"session": session(id="other", since=NOW, modes=None, models=None, config_options=[1])},
        ),
        (ModeChanged(mode_id="plan"), {"session": session(modes={**SESSION.modes, "currentModeId": "plan"})}),
        (ModelChanged(model_id="small"), {"session": session(models={"currentModelId": "small"})}),
        (ConfigChanged(config_options=[2]), {"session": session(config_options=[2])}),
        (CommandsAvailable(commands=[3]), {"session": session(commands=[3])}),
        (
            RequestSent(n=7, method="m", params=[1]),
            {
                "traffic": traffic(
                    sent=7, calls=TRAFFIC.calls | {7: PendingCall(method="m", since=NOW, params=[1])}
                )
            },
        ),
        (RequestAnswered(n=2, method="m"), {"traffic": traffic(calls={6: CALL})}),
        (NoticeSent(n=7, method="m"), {"traffic": traffic(sent=7)}),
        (
            NoticeSent(n=7, method="session/cancel"),
            {"traffic": traffic(sent=7), "turn": Turn(prompt_id="t", since=2, cancelling=True)},
        ),
        (
            RequestSent(n=2, method="session/cancel"),
            {
                "traffic": traffic(
                    sent=2, calls=TRAFFIC.calls | {2: PendingCall(method="session/cancel", since=NOW)}
                )
            },
        ),
        (
            RequestReceived(id="r", rpc_id="x", method="m", params=[1]),
            {
                "traffic": traffic(
                    asks=TRAFFIC.asks
                    | {"r": PendingAgentRequest(rpc_id="x", method="m", since=NOW, params=[1])}
                )
            },
        ),
        (ReplySent(n=7, method="m", id="w.1.5"), {"traffic": traffic(sent=7, asks={"w.1.7": ASK})}),
        (ReplySent(n=7, method="m"), {"traffic": traffic(sent=7)}),
        (Diagnostic(text="x", skipping=80), {"traffic": traffic(skipping=80)}),
        (Diagnostic(text="x", skipped=5), {"traffic": traffic(skipping=None)}),
        (Diagnostic(text="x"), {}),
    ],
)
def test_a_fact_changes_only_its_own_fields(fact: Fact, expected: dict[str, Any]) -> None:
    assert changes(fact) == expected


def test_a_reset_keeps_the_agent_and_the_traffic_of_its_process() -> None:
    event = Event(1, NOW, ConversationReset(), "w", "w")
    assert fold_conversation(FULL, event) == Conversation(traffic=FULL.traffic, agent=FULL.agent)


def test_the_end_of_a_process_keeps_the_fields_that_the_next_one_needs() -> None:
    after = fold_conversation(FULL, Event(1, NOW, WorkerExited(), "w", "w"))
    kept = {name for name, value in asdict(after).items() if value != getattr(Conversation(), name)}
    assert kept == KEPT_FIELDS
    assert all(getattr(after, name) == getattr(FULL, name) for name in KEPT_FIELDS)


def test_only_a_session_that_replaces_another_needs_a_recap() -> None:
    fact = AgentSession(acp_session_id="a", how="new")
    assert changes(fact, Conversation()) == {"session": AcpSession(id="a", since=NOW)}
    same = Conversation(session=AcpSession(id="a", since=3))
    assert changes(fact, same) == {}
    other = Conversation(session=AcpSession(id="b", since=3, commands=[1]))
    assert changes(fact, other) == {"session": AcpSession(id="a", since=NOW, commands=[1]), "recap": True}
    unnamed = Conversation(session=AcpSession(id="", since=3))
    assert changes(fact, unnamed) == {"session": AcpSession(id="a", since=NOW)}


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (ModeChanged(mode_id="m"), AcpSession(id="", since=NOW, modes={"currentModeId": "m"})),
        (ModelChanged(model_id="m"), AcpSession(id="", since=NOW, models={"currentModelId": "m"})),
    ],
)
def test_a_setting_may_come_before_its_session(fact: Fact, expected: AcpSession) -> None:
    assert changes(fact, Conversation()) == {"session": expected}


def test_cancelling_needs_a_turn() -> None:
    assert changes(NoticeSent(n=1, method="session/cancel"), Conversation()) == {
        "traffic": RunTraffic(sent=1)
    }


def test_history_is_replayed_while_a_session_is_loaded_or_resumed() -> None:
    for method, replaying in (("session/load", True), ("session/resume", True), ("session/new", False)):
        state = Conversation(traffic=RunTraffic(calls={1: CALL, 2: PendingCall(method=method, since=1)}))
        assert state.replaying is replaying
    assert not Conversation().replaying


def test_a_conversation_knows_its_open_questions_and_capabilities() -> None:
    assert [FULL.asking, Conversation().asking] == [True, False]
    assert Conversation(questions=FULL.questions).asking
    assert Conversation(permissions=FULL.permissions).asking
    assert FULL.acp_session_id == "s"
    assert Conversation(session=AcpSession(id="", since=1)).acp_session_id is None
    assert FULL.traffic.next_n == 7
    capabilities = {"a": {"b": {}, "c": False, "d": None}, "e": 0}
    able = Conversation(agent={"agentCapabilities": capabilities})
    for path, can in (
        (("a",), True),
        (("a", "b"), True),
        (("e",), True),
        (("a", "c"), False),
        (("a", "d"), False),
    ):
        assert able.has_capability(*path) is can
    assert not able.has_capability("e", "x")
    assert not able.has_capability("x")
    assert not Conversation().has_capability("a")
