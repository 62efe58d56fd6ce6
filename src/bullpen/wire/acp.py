"""Translate messages of the Agent Client Protocol from an agent into facts, replies and tasks.

No message is dropped because it does not validate: what is not understood is stored as it was sent.
"""

import re
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..domain.agents import AgentDefinition
from ..domain.conversation import (
    AgentContent,
    AgentMessage,
    AgentThought,
    CommandsAvailable,
    ConfigChanged,
    Diagnostic,
    ModeChanged,
    Permission,
    Plan,
    Question,
    RequestReceived,
    SessionInfo,
    ToolCall,
    ToolCallUpdate,
    TurnEnd,
    UnknownUpdate,
    Usage,
    UserEcho,
    request_id,
)
from ..domain.conversation_state import Conversation
from ..domain.events import Fact
from ..domain.tool_calls import merge_tool_call
from .acp_answers import facts_of_error, facts_of_result
from .acp_calls import (
    REQUEST_CANCELLED,
    ErrorReply,
    OutgoingReply,
    cancellation_replies,
    permission_result,
    question_result,
)
from .acp_joiner import TextChunk
from .jsonrpc import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    ErrorResponse,
    InvalidLine,
    Line,
    LineTooLong,
    LongLineEnd,
    Notification,
    Request,
    Response,
    match_answer,
)

HISTORY_UPDATES = frozenset(
    {
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
    }
)
MAX_PENDING_REQUESTS = 256  # unanswered requests of one agent; more are refused
# Text after one of these facts begins a new block. Other facts may come between two pieces of a block.
BLOCK_ENDS = (ToolCall, Plan, Permission, Question, AgentContent, UserEcho, TurnEnd)


class AgentTask(Struct, frozen=True, kw_only=True):
    """A request of the agent that a worker must carry out: a file or terminal operation."""

    id: str
    rpc_id: Any
    method: str
    params: dict[str, Any]


class ParsedMessage(Struct, frozen=True, kw_only=True):
    """The facts, replies and task that follow from one message of an agent.

    If nothing follows, `ignored` is the reason.
    """

    facts: list[Fact] = []
    chunk: TextChunk | None = None
    task: AgentTask | None = None
    replies: list[OutgoingReply] = []
    ignored: str | None = None

    @property
    def closes_text(self) -> bool:
        """Whether the message ends the text block that is open."""
        return any(isinstance(fact, BLOCK_ENDS) for fact in self.facts)


class AcpReader:
    """Translates the messages of one run of one agent."""

    def __init__(self, worker_id: str, run: int, definition: AgentDefinition) -> None:
        self._worker_id = worker_id
        self._run = run
        self._offer = definition.offer
        self._late_history = definition.quirks.late_history
        pattern = definition.quirks.mode_text
        self._mode_text = re.compile(pattern) if pattern else None

    def read(self, line: Line, state: Conversation) -> ParsedMessage:  # noqa: PLR0911 (a table)
        """Return the facts, replies and task that follow from a line of the agent."""
        match line:
            case Notification(method="session/update", params={"update": dict(update)}):
                return self._read_update(update, line.params.get("sessionId"), state)
            case Notification(method="$/cancel_request", params={"requestId": rpc_id}):
                return _cancelled(rpc_id, state)
            case Notification():
                return ParsedMessage(facts=[UnknownUpdate(update=_as_json(line))])
            case Request() if len(state.traffic.asks) >= MAX_PENDING_REQUESTS:
                return _refused(
                    line, ErrorReply(INTERNAL_ERROR, f"{MAX_PENDING_REQUESTS} of your requests wait already")
                )
            case Request():
                return self._read_request(line, state)
            case Response() | ErrorResponse():
                return _read_answer(line, state)
            case InvalidLine():
                return ParsedMessage(facts=[Diagnostic(text=line.text, data={"why": line.why})])
            case LineTooLong():
                text = "a line that is too long is being left out"
                return ParsedMessage(facts=[Diagnostic(text=text, skipping=line.start)])
            case LongLineEnd():
                text = f"a line of {line.size} bytes was left out"
                return ParsedMessage(facts=[Diagnostic(text=text, skipped=line.size)])
            case _:
                return ParsedMessage(ignored="not a message")

    def _read_update(self, update: dict[str, Any], acp_session_id: Any, state: Conversation) -> ParsedMessage:
        """Return the facts or the text in a `session/update` notification."""
        if _is_foreign(acp_session_id, state):
            return ParsedMessage(facts=[UnknownUpdate(update=update, acp_session_id=acp_session_id)])
        repeats = state.replaying or (self._late_history and state.loaded)
        if repeats and str(update.get("sessionUpdate")) in HISTORY_UPDATES:
            return ParsedMessage(ignored="history that is known already")
        content = fact_of_update(update)
        if not isinstance(content, TextChunk):
            return ParsedMessage(facts=[content])
        if self._mode_text and (found := self._mode_text.fullmatch(content.text)):
            return ParsedMessage(facts=[ModeChanged(mode_id=found[1])])
        return ParsedMessage(chunk=content) if content.text else ParsedMessage(ignored="no text in it")

    def _read_request(self, line: Request, state: Conversation) -> ParsedMessage:
        """Return the facts, reply or task for a request of the agent."""
        id = request_id(self._worker_id, self._run, line.start)
        params = line.params if isinstance(line.params, dict) else {}
        received = RequestReceived(id=id, rpc_id=line.id, method=line.method)
        task = AgentTask(id=id, rpc_id=line.id, method=line.method, params=params)
        match line.method:
            case "session/request_permission":
                return _asked(received, _permission(id, params, state), state)
            case "elicitation/create":
                return _asked(received, _question(id, params), state)
            case "fs/read_text_file" | "fs/write_text_file" if self._offer.fs:
                return ParsedMessage(task=task)
            case "terminal/wait_for_exit" if self._offer.terminal:
                terminal = {"terminalId": params.get("terminalId")}
                return ParsedMessage(facts=[replace(received, params=terminal)], task=task)
            case "terminal/create" | "terminal/output" | "terminal/kill" | "terminal/release" if (
                self._offer.terminal
            ):
                return ParsedMessage(task=task)
            case _:
                return _refused(line, ErrorReply(METHOD_NOT_FOUND, f"there is no method {line.method}"))


def fact_of_update(update: dict[str, Any]) -> Fact | TextChunk:  # noqa: PLR0911, PLR0912 (a table: every update and its fact)
    """Return the fact in a `session/update` notification; pieces of text are TextChunks, which get joined."""
    message_id = update.get("messageId")
    message_id = message_id if isinstance(message_id, str) else None
    match update:
        case {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": str(text)}}:
            return TextChunk(AgentMessage.type, text, message_id)
        case {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": str(text)}}:
            return TextChunk(AgentThought.type, text, message_id)
        case {"sessionUpdate": "agent_message_chunk", "content": dict(content)}:
            return AgentContent(content=content, message_id=message_id)
        case {"sessionUpdate": "agent_thought_chunk", "content": dict(content)}:
            return AgentContent(content=content, message_id=message_id, thought=True)
        case {"sessionUpdate": "user_message_chunk", "content": content}:
            return UserEcho(content=content, message_id=message_id)
        case {"sessionUpdate": "tool_call"}:
            return ToolCall(call=update)
        case {"sessionUpdate": "tool_call_update"}:
            return ToolCallUpdate(call=update)
        case {"sessionUpdate": "plan", "entries": list(entries)}:
            return Plan(entries=entries)
        case {"sessionUpdate": "available_commands_update", "availableCommands": list(commands)}:
            return CommandsAvailable(commands=commands)
        case {"sessionUpdate": "current_mode_update", "currentModeId": str(mode)}:
            return ModeChanged(mode_id=mode)
        case {"sessionUpdate": "config_option_update", "configOptions": list(options)}:
            return ConfigChanged(config_options=options)
        case {"sessionUpdate": "session_info_update", **info}:
            return SessionInfo(info=info)
        case {"sessionUpdate": "usage_update", "used": used, "size": size} if _are_numbers(used, size):
            return Usage(used=used, size=size, cost=update.get("cost"))
        case _:
            return UnknownUpdate(update=update)


def _are_numbers(*values: Any) -> bool:
    """Return whether all values are numbers; booleans are not."""
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _refused(line: Request, fault: ErrorReply) -> ParsedMessage:
    """Return the error reply to a request, and the fact that records the request."""
    reply = OutgoingReply(rpc_id=line.id, method=line.method, fault=fault)
    return ParsedMessage(facts=[UnknownUpdate(update=_as_json(line))], replies=[reply])


def _asked(received: RequestReceived, question: Permission | Question, state: Conversation) -> ParsedMessage:
    """Return the facts of a question, and its cancellation if the turn is being cancelled."""
    if state.turn is None or not state.turn.cancelling:
        return ParsedMessage(facts=[received, question])
    # The turn is being cancelled, so the question is withdrawn at once.
    result = permission_result(None) if isinstance(question, Permission) else question_result("cancelled")
    reply = OutgoingReply(rpc_id=received.rpc_id, method=received.method, result=result, id=received.id)
    withdrawn_question = replace(question, status="cancelled", by="cancel")
    return ParsedMessage(facts=[received, withdrawn_question], replies=[reply])


def _permission(id: str, params: dict[str, Any], state: Conversation) -> Permission:
    """Return the fact of a permission request, with the details of the announced call."""
    call, options = params.get("toolCall"), params.get("options")
    requested = call if isinstance(call, dict) else {}
    announced = state.tools.get(str(requested.get("toolCallId")))
    # Some agents send only the id of the call; the user needs the details that were announced before.
    merged = requested if announced is None else merge_tool_call(announced, requested)
    return Permission(
        id=id,
        tool_call=merged,
        options=options if isinstance(options, list) else [],
        status="pending",
        announced=() if announced is None else tuple(name for name in merged if requested.get(name) is None),
    )


def _question(id: str, params: dict[str, Any]) -> Question:
    """Return the fact of a form."""
    message, url = params.get("message"), params.get("url")
    return Question(
        id=id,
        message=message if isinstance(message, str) else "",
        status="pending",
        schema=params.get("requestedSchema"),
        url=url if isinstance(url, str) else None,
    )


def _read_answer(line: Response | ErrorResponse, state: Conversation) -> ParsedMessage:
    """Return the facts in the agent's answer to a request of Bullpen.

    If the answer ends a turn, open questions and permissions get the reply that they are cancelled.
    """
    calls = state.traffic.calls
    n = match_answer(line.id, calls)
    if n is None:
        return ParsedMessage(facts=[Diagnostic(text="an answer to no request of ours", data=_as_json(line))])
    if isinstance(line, ErrorResponse):
        facts = facts_of_error(n, calls[n], line, state)
    else:
        facts = facts_of_result(n, calls[n], line.result, state)
    ends = any(isinstance(fact, TurnEnd) for fact in facts)
    return ParsedMessage(facts=facts, replies=cancellation_replies(state) if ends else [])


def _cancelled(rpc_id: Any, state: Conversation) -> ParsedMessage:
    """Return the facts and the reply for a request that the agent cancels."""
    for id, ask in state.traffic.asks.items():
        if ask.rpc_id != rpc_id:
            continue
        open = state.permissions.get(id) or state.questions.get(id)
        facts: list[Fact] = [replace(open.fact, status="cancelled", by="agent")] if open else []
        fault = ErrorReply(REQUEST_CANCELLED, "cancelled")
        return ParsedMessage(
            facts=facts, replies=[OutgoingReply(rpc_id=rpc_id, method=ask.method, fault=fault, id=id)]
        )
    return ParsedMessage(ignored="takes back a question that is not open")


def _is_foreign(acp_session_id: Any, state: Conversation) -> bool:
    """Return whether an update is for another session of the agent.

    Some agents send updates before the id of the session is known.
    """
    ours = state.acp_session_id
    return (
        isinstance(acp_session_id, str)
        and ours not in (None, acp_session_id)
        and not state.traffic.waits_for("session/new")
    )


def _as_json(line: Line) -> dict[str, Any]:
    """Return a parsed message as the JSON object that was received."""
    match line:
        case Notification():
            return {"method": line.method, "params": line.params}
        case Request():
            return {"id": line.id, "method": line.method, "params": line.params}
        case Response():
            return {"id": line.id, "result": line.result}
        case ErrorResponse():
            return {"id": line.id, "error": {"code": line.code, "message": line.message, "data": line.data}}
        case _:
            return {}
