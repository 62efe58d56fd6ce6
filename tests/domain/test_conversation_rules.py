"""How a conversation is attached again, what is closed when it stops, and which options are chosen."""

from typing import Any

import pytest

from bullpen.domain.agents import AgentDefinition, AgentQuirks
from bullpen.domain.conversation import AgentInitialized, AgentSession, Permission, Question, ToolCall
from bullpen.domain.conversation_rules import (
    auth_method,
    cancel_open_items,
    first_option_of_kind,
    login_command,
    reattach_methods,
)
from bullpen.domain.conversation_state import Conversation, fold_conversation
from bullpen.domain.events import Event, Fact

BOTH = {"loadSession": True, "sessionCapabilities": {"resume": {}}}


def after(*facts: Fact) -> Conversation:
    state = Conversation()
    for fact in facts:
        state = fold_conversation(state, Event(1, 1000, fact, "w", "w"))
    return state


def capable_of(capabilities: dict[str, Any]) -> Conversation:
    return after(
        AgentSession(acp_session_id="s", how="new"),
        AgentInitialized(result={"agentCapabilities": capabilities}),
    )


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        (BOTH, ["session/resume", "session/load", "session/new"]),
        ({"loadSession": True}, ["session/load", "session/new"]),
        ({"sessionCapabilities": {"resume": {}}}, ["session/resume", "session/new"]),
        ({}, ["session/new"]),
    ],
)
def test_a_session_is_attached_by_the_methods_that_the_agent_offers(
    capabilities: dict[str, Any], expected: list[str]
) -> None:
    assert reattach_methods(capable_of(capabilities), AgentQuirks(), now=1000) == expected


def test_an_agent_without_a_session_gets_a_new_one() -> None:
    assert reattach_methods(
        after(AgentInitialized(result={"agentCapabilities": BOTH})), AgentQuirks(), now=10**6
    ) == ["session/new"]


def test_a_session_is_not_loaded_before_the_time_of_its_quirk() -> None:
    state = capable_of({"loadSession": True})
    assert reattach_methods(state, AgentQuirks(load_after=60), now=60_999) == ["session/new"]
    assert reattach_methods(state, AgentQuirks(load_after=60), now=61_000) == ["session/load", "session/new"]


def test_everything_open_is_cancelled_when_a_conversation_ends() -> None:
    state = after(
        Permission(id="p", tool_call={"toolCallId": "t"}, options=[1], status="pending"),
        Question(id="q", message="?", status="pending"),
        ToolCall(call={"toolCallId": "u"}),
    )
    closed = [fact.to_data() for fact in cancel_open_items(state, by="ann")]
    assert [each["status"] for each in closed] == ["cancelled"] * 4
    assert closed[0] == {
        "id": "p",
        "toolCall": {"toolCallId": "t"},
        "options": [1],
        "status": "cancelled",
        "by": "ann",
    }
    assert [each["toolCallId"] for each in closed[2:]] == ["t", "u"]


def test_an_option_is_chosen_by_its_kind_and_answered_with_its_id() -> None:
    options = [
        {"optionId": "Ja!", "kind": "allow_always"},
        {"optionId": "no", "kind": "reject_once"},
        {"optionId": "never", "kind": "reject_once"},
        "nonsense",
    ]
    assert first_option_of_kind(options, "reject_always", "reject_once") == "no"
    assert first_option_of_kind(options, "allow_always") == "Ja!"
    assert first_option_of_kind(options, "allow_once") is None


def agent(**changes: Any) -> AgentDefinition:
    return AgentDefinition(id="a", name="A", kind="acp", command=("agent", "--acp"), **changes)


def can_log_in(*methods: Any) -> Conversation:
    return after(AgentInitialized(result={"authMethods": list(methods)}))


def test_an_agent_whose_variable_is_set_is_logged_in_automatically() -> None:
    state = can_log_in(
        {"id": "web", "name": "Web"}, {"type": "env_var", "id": "key", "vars": [{"name": "A_KEY"}]}
    )
    assert auth_method(state, agent(), {"A_KEY"}) == "key"
    assert auth_method(state, agent(), {"OTHER"}) is None


def test_invalid_login_methods_are_ignored() -> None:
    odd = [5, {"id": [1]}, {"type": "env_var", "id": "x", "vars": [{"name": ["A_KEY"]}]}, {"type": "env_var"}]
    assert auth_method(can_log_in(*odd), agent(auth={"A_KEY": "key"}), {"A_KEY"}) is None
    assert login_command(can_log_in(*odd), agent()) == ()


def test_a_definition_maps_variables_to_login_methods() -> None:
    definition = agent(auth={"A_KEY": "key", "B_KEY": "other"})
    state = can_log_in({"id": "key", "name": "Key"})
    assert auth_method(state, definition, {"A_KEY", "B_KEY"}) == "key"
    assert auth_method(state, definition, {"B_KEY"}) is None


def test_the_login_command_is_that_of_the_agent_or_of_its_definition() -> None:
    definition = agent(login_command=("agent", "login"))
    assert login_command(can_log_in({"id": "web"}), definition) == ("agent", "login")
    terminal = {"type": "terminal", "id": "t", "name": "Login", "args": ["--login"]}
    assert login_command(can_log_in(terminal), definition) == ("agent", "--acp", "--login")
