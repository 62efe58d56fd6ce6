"""Decisions about a conversation: how to go back to it, what to close when it stops, what to choose."""

from collections.abc import Container, Iterable
from typing import Any

from msgspec.structs import replace

from .agents import AgentDefinition, AgentQuirks
from .conversation import ToolCallUpdate
from .conversation_state import Conversation
from .events import Fact


def ways_back(state: Conversation, quirks: AgentQuirks, now: int) -> list[str]:
    """The methods to try, in order, to have a session again after the agent's process was started anew."""
    ways = []
    if state.session is not None and state.acp_session_id:
        if state.capable("sessionCapabilities", "resume"):
            ways.append("session/resume")
        # Loaded too early, the session of some agents is gone for good.
        if state.capable("loadSession") and now - state.session.since >= quirks.load_after * 1000:
            ways.append("session/load")
    return [*ways, "session/new"]


def loose_ends(state: Conversation, by: str) -> list[Fact]:
    """What has to be said when nothing more will come: open questions and tool calls are cancelled."""
    permissions = [replace(each.fact, status="cancelled", by=by) for each in state.permissions.values()]
    questions = [replace(each.fact, status="cancelled", by=by) for each in state.questions.values()]
    tools = [
        ToolCallUpdate(call={"toolCallId": id, "status": "cancelled", "_meta": {"bullpen": {"by": by}}})
        for id in state.tools
    ]
    return [*permissions, *questions, *tools]


def auth_method(state: Conversation, definition: AgentDefinition, env: Container[str]) -> str | None:
    """The method to log in with that needs nobody: one whose variables are all set."""
    for method in _auth_methods(state):
        match method:
            case {"type": "env_var", "id": str(id), "vars": [_, *_] as wanted}:
                names = [each.get("name") for each in wanted if isinstance(each, dict)]
                if all(isinstance(name, str) and name in env for name in names):
                    return id
    offered = [method.get("id") for method in _auth_methods(state)]
    for variable, id in definition.auth.items():
        if variable in env and id in offered:
            return id
    return None


def login_command(state: Conversation, definition: AgentDefinition) -> tuple[str, ...]:
    """What a person runs in a terminal to log in; empty when nobody knows."""
    for method in _auth_methods(state):
        match method:
            case {"type": "terminal"}:
                args = method.get("args")
                more = [arg for arg in args if isinstance(arg, str)] if isinstance(args, list) else []
                return (*definition.command, *more)
    return definition.login_command


def option_of_kind(options: Iterable[Any], *kinds: str) -> str | None:
    """The id of the first option of the first kind there is: ids are free text, kinds are not."""
    for kind in kinds:
        for option in options:
            match option:
                case {"kind": str(found), "optionId": str(id)} if found == kind:
                    return id
    return None


def _auth_methods(state: Conversation) -> list[dict[str, Any]]:
    methods = (state.agent or {}).get("authMethods")
    return [each for each in methods if isinstance(each, dict)] if isinstance(methods, list) else []
