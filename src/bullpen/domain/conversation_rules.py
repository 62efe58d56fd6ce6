"""Decisions about a conversation: how to resume it, what to cancel when it stops, which options to choose."""

from collections.abc import Container, Iterable
from typing import Any

from msgspec.structs import replace

from .agents import AgentDefinition, AgentQuirks
from .conversation import ToolCallUpdate
from .conversation_state import Conversation
from .events import Fact


def reattach_methods(state: Conversation, quirks: AgentQuirks, now: int) -> list[str]:
    """Return the ACP methods to try, in order, to get a session after the agent's process was restarted."""
    methods = []
    if state.session is not None and state.acp_session_id:
        if state.has_capability("sessionCapabilities", "resume"):
            methods.append("session/resume")
        # Some agents destroy a session that is loaded too soon after its creation.
        if state.has_capability("loadSession") and now - state.session.since >= quirks.load_after * 1000:
            methods.append("session/load")
    return [*methods, "session/new"]


def cancel_open_items(state: Conversation, by: str) -> list[Fact]:
    """Return facts that cancel an agent's open permissions, questions and tool calls.

    `by` is recorded as the reason.
    """
    permissions = [replace(each.fact, status="cancelled", by=by) for each in state.permissions.values()]
    questions = [replace(each.fact, status="cancelled", by=by) for each in state.questions.values()]
    tools = [
        ToolCallUpdate(call={"toolCallId": id, "status": "cancelled", "_meta": {"bullpen": {"by": by}}})
        for id in state.tools
    ]
    return [*permissions, *questions, *tools]


def auth_method(state: Conversation, definition: AgentDefinition, env: Container[str]) -> str | None:
    """Return the id of an authentication method that needs no user, because its variables are in `env`.

    Return None if the agent offers no such method.
    """
    for method in _auth_methods(state):
        match method:
            case {"type": "env_var", "id": str(id), "vars": [_, *_] as variables}:
                names = [each.get("name") for each in variables if isinstance(each, dict)]
                if all(isinstance(name, str) and name in env for name in names):
                    return id
    offered = [method.get("id") for method in _auth_methods(state)]
    for variable, id in definition.auth.items():
        if variable in env and id in offered:
            return id
    return None


def login_command(state: Conversation, definition: AgentDefinition) -> tuple[str, ...]:
    """Return the command that a user runs in a terminal to log in; empty if no command is known."""
    for method in _auth_methods(state):
        match method:
            case {"type": "terminal"}:
                args = method.get("args")
                more = [arg for arg in args if isinstance(arg, str)] if isinstance(args, list) else []
                return (*definition.command, *more)
    return definition.login_command


def first_option_of_kind(options: Iterable[Any], *kinds: str) -> str | None:
    """Return the id of the first option of the first kind in `kinds` that an option has; None if none has.

    Clients match kinds because the ids are free text.
    """
    for kind in kinds:
        for option in options:
            match option:
                case {"kind": str(found), "optionId": str(id)} if found == kind:
                    return id
    return None


def _auth_methods(state: Conversation) -> list[dict[str, Any]]:
    """Return the authentication methods that the agent announced."""
    methods = (state.agent or {}).get("authMethods")
    return [each for each in methods if isinstance(each, dict)] if isinstance(methods, list) else []
