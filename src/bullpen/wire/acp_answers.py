"""Translate the agent's answers to requests of Bullpen into facts."""

from typing import Any

from ..domain.conversation import (
    AgentInitialized,
    AgentSession,
    ConfigChanged,
    ModeChanged,
    ModelChanged,
    RequestAnswered,
    TurnEnd,
    Usage,
)
from ..domain.conversation_rules import cancel_open_items
from ..domain.conversation_state import Conversation, PendingCall
from ..domain.events import Fact
from .jsonrpc import INTERNAL_ERROR, ErrorResponse


def facts_of_result(  # noqa: PLR0911 (a table: every method and what its answer tells)
    n: int, call: PendingCall, result: Any, state: Conversation
) -> list[Fact]:
    """Return the facts in the agent's successful answer to request `n`."""
    answered = RequestAnswered(n=n, method=call.method)
    params = call.params if isinstance(call.params, dict) else {}
    match call.method, result, params:
        case "initialize", dict(), _:
            return [answered, AgentInitialized(result=result)]
        case "session/new", {"sessionId": str(id)}, _:
            return [answered, _session(id, "new", result)]
        case (("initialize" | "session/new"), _, _):
            error = {"code": INTERNAL_ERROR, "message": f"{call.method} was answered without what it is for"}
            return [RequestAnswered(n=n, method=call.method, error={**error, "data": result})]
        case "session/load", _, {"sessionId": str(id)}:
            return [answered, _session(id, "load", result)]
        case "session/resume", _, {"sessionId": str(id)}:
            return [answered, _session(id, "resume", result)]
        case "session/prompt", _, _:
            return [answered, *_usage_facts(result), *turn_end(_stop_reason(result), state)]
        case "session/set_mode", _, {"modeId": str(id)}:
            return [answered, ModeChanged(mode_id=id)]
        case "session/set_model", _, {"modelId": str(id)}:
            return [answered, ModelChanged(model_id=id)]
        case "session/set_config_option", {"configOptions": list(options)}, _:
            return [answered, ConfigChanged(config_options=options)]
        case "session/set_config_option", _, {"configId": str(id), "value": value}:
            return [answered, ConfigChanged(config_options=_options_with_value(state, id, value))]
        case _:
            return [answered]


def facts_of_error(n: int, call: PendingCall, error: ErrorResponse, state: Conversation) -> list[Fact]:
    """Return the facts in the agent's error answer to request `n`."""
    details = {"code": error.code, "message": error.message}
    if error.data is not None:
        details["data"] = error.data
    answered = RequestAnswered(n=n, method=call.method, error=details)
    if call.method != "session/prompt":
        return [answered]
    if state.turn is not None and state.turn.cancelling:  # some agents fail a turn that was cancelled
        return [answered, *turn_end("cancelled", state)]
    return [answered, *turn_end("error", state, error_text(error))]


def turn_end(stop_reason: str, state: Conversation, error: str | None = None) -> list[Fact]:
    """Return the facts that end a turn: the cancellation of its open requests and tool calls, then TurnEnd.

    After the stop reason `end_turn`, tool calls stay open.
    """
    cancelled = cancel_open_items(state, by="agent")
    if stop_reason == "end_turn":  # a tool may continue in the background
        cancelled = [fact for fact in cancelled if fact.type != "tool_call_update"]
    return [*cancelled, TurnEnd(stop_reason=stop_reason, error=error)]


def error_text(error: ErrorResponse) -> str:
    """Return the error as one sentence, including the details that agents put into its data."""
    match error.data:
        case str(more) | {"details": str(more)} | {"message": str(more)} if more and more != error.message:
            return f"{error.message}: {more}"
        case _:
            return error.message


def _session(id: str, how: str, result: Any) -> AgentSession:
    """Return the fact that the agent has created, loaded or resumed (`how`) a session."""
    result = result if isinstance(result, dict) else {}
    options = result.get("configOptions")
    return AgentSession(
        acp_session_id=id,
        how=how,
        modes=result.get("modes"),
        models=result.get("models"),
        config_options=options if isinstance(options, list) else None,
    )


def _stop_reason(result: Any) -> str:
    """Return why the turn ended, or "unknown"."""
    match result:
        case {"stopReason": str(reason)}:
            return reason
        case _:
            return "unknown"


def _usage_facts(result: Any) -> list[Fact]:
    """Return the usage in the answer to a prompt, if there is any."""
    match result:
        case {"usage": dict(usage)} | {"_meta": {"quota": dict(usage)}}:
            return [Usage(turn=usage)]
        case _:
            return []


def _options_with_value(state: Conversation, id: str, value: Any) -> list[Any]:
    """Return the agent's configuration options with one value changed."""
    options = (state.session.config_options if state.session else None) or []
    return [
        {**option, "currentValue": value} if isinstance(option, dict) and option.get("id") == id else option
        for option in options
    ]
