"""The state of one agent's conversation, computed from its events by a pure fold; its size is bounded.

It holds all that a new server process needs to continue: during the handshake, in a turn, or with an open
question.
"""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .conversation import (
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
)
from .events import Event, WorkerExited, WorkerFailed, WorkerSpawning, WorkerTerminated
from .tool_calls import Tools, tool_call_id, with_tool_call

REATTACH_METHODS = frozenset({"session/load", "session/resume"})


class PendingCall(Struct, frozen=True, kw_only=True):
    """A request from Bullpen to the agent that the agent has not answered yet."""

    method: str
    since: int
    params: Any = None


class PendingAgentRequest(Struct, frozen=True, kw_only=True):
    """A request from the agent to Bullpen that Bullpen has not answered yet."""

    rpc_id: Any
    method: str
    since: int
    params: Any = None


class RunTraffic(Struct, frozen=True, kw_only=True):
    """The JSON-RPC traffic of one run: the number of the last sent line, and open requests on both sides."""

    sent: int = 0
    calls: dict[int, PendingCall] = {}
    asks: dict[str, PendingAgentRequest] = {}
    skipping: int | None = None  # offset at which a line began that is too long and is skipped

    @property
    def next_n(self) -> int:
        """The number of the next line to the agent. Each line has one fact, so lines can be counted."""
        return self.sent + 1

    def waits_for(self, *methods: str) -> bool:
        """Return whether a request with one of these methods is not answered yet."""
        return any(call.method in methods for call in self.calls.values())


class AcpSession(Struct, frozen=True, kw_only=True):
    """The agent's own session, and the modes, models, options and commands that it offers."""

    id: str
    since: int
    modes: Any = None
    models: Any = None
    config_options: list[Any] | None = None
    commands: list[Any] = []


class Turn(Struct, frozen=True, kw_only=True):
    """The running turn of an agent."""

    prompt_id: str
    since: int
    cancelling: bool = False


class OpenTextBlock(Struct, frozen=True):
    """A text block that the agent is still sending."""

    type: str
    message_id: str | None = None


class OpenPermission(Struct, frozen=True, kw_only=True):
    """A permission request that is not answered yet."""

    fact: Permission
    since: int


class OpenQuestion(Struct, frozen=True, kw_only=True):
    """A form that is not answered yet."""

    fact: Question
    since: int


class Conversation(Struct, frozen=True, kw_only=True):
    """The state of one agent's conversation after an event."""

    agent: dict[str, Any] | None = None  # the agent's answer to `initialize`
    session: AcpSession | None = None
    turn: Turn | None = None
    block: OpenTextBlock | None = None
    tools: Tools = {}
    tool_messages: dict[str, int] = {}  # the number of the event that announced an open tool call
    plan: list[Any] = []
    permissions: dict[str, OpenPermission] = {}
    questions: dict[str, OpenQuestion] = {}
    usage: Usage = Usage()
    traffic: RunTraffic = RunTraffic()
    loaded: bool = False  # the agent resumed its session with session/load, and no turn has begun since
    recap: bool = False  # the agent's session is new: the next prompt must include the earlier conversation

    @property
    def replaying(self) -> bool:
        """Whether the agent is repeating history: it has not answered session/load or session/resume yet.

        Agents must not repeat history when they resume, but some do. No new text can arrive before the
        answer.
        """
        return self.traffic.waits_for(*REATTACH_METHODS)

    @property
    def acp_session_id(self) -> str | None:
        """The agent's id of its session. It outlives the process, so the next process can resume it."""
        return self.session.id or None if self.session else None

    @property
    def asking(self) -> bool:
        """Whether a permission or a question is open."""
        return bool(self.permissions or self.questions)

    def has_capability(self, *path: str) -> bool:
        """Return whether the agent announced a capability. `{}` counts as yes; missing or false as no."""
        value: Any = (self.agent or {}).get("agentCapabilities")
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value is not None and value is not False


def fold_conversation(state: Conversation, event: Event) -> Conversation:  # noqa: PLR0911, PLR0912 (a table)
    """Return the conversation after one more event of its worker."""
    fact, now = event.fact, event.timestamp
    match fact:
        case AgentMessage() | AgentThought():
            return replace(state, block=OpenTextBlock(fact.type, fact.message_id) if fact.partial else None)
        case ToolCall() | ToolCallUpdate():
            return _with_tool_call(state, fact, event.seq)
        case Plan():
            return replace(state, plan=fact.entries)
        case Permission():
            return _with_permission(state, fact, now)
        case Question():
            return _with_question(state, fact, now)
        case TurnStart():
            turn = Turn(prompt_id=fact.prompt_id, since=now)
            return replace(state, turn=turn, block=None, loaded=False, recap=False)
        case TurnEnd():
            return replace(state, turn=None, block=None, tools={}, tool_messages={})
        case Usage():
            return replace(state, usage=_merged_usage(state.usage, fact))
        case AgentInitialized():
            return replace(state, agent=fact.result)
        case ConversationReset():
            return Conversation(traffic=state.traffic, agent=state.agent)
        case AgentSession() if fact.how == "new" and state.acp_session_id not in (None, fact.acp_session_id):
            return replace(state, session=_with_settings(state.session, fact, now), recap=True)
        case AgentSession():
            session = _with_settings(state.session, fact, now)
            return replace(state, session=session, loaded=fact.how == "load")
        case ModeChanged() | ModelChanged() | ConfigChanged() | CommandsAvailable():
            return replace(state, session=_with_settings(state.session, fact, now))
        case (
            RequestSent() | RequestAnswered() | NoticeSent() | RequestReceived() | ReplySent() | Diagnostic()
        ):
            return _with_traffic(state, fact, now)
        case WorkerSpawning() | WorkerExited() | WorkerFailed() | WorkerTerminated():
            return _after_run(state)
        case _:
            return state


def _with_tool_call(state: Conversation, fact: ToolCall | ToolCallUpdate, seq: int) -> Conversation:
    """Return the conversation after a tool call was announced, updated or finished."""
    tools, announced = with_tool_call(state.tools, fact.call), state.tool_messages
    id = tool_call_id(fact.call)
    if isinstance(fact, ToolCall) and id is not None:
        announced = {id: seq, **announced}
    return replace(
        state, tools=tools, tool_messages={id: seq for id, seq in announced.items() if id in tools}
    )


def _with_permission(state: Conversation, fact: Permission, now: int) -> Conversation:
    """Return the conversation after a permission was asked or settled."""
    if fact.status != "pending":
        return replace(state, permissions=_without(state.permissions, fact.id))
    return replace(
        state,
        permissions=state.permissions | {fact.id: OpenPermission(fact=fact, since=now)},
        tools=with_tool_call(state.tools, fact.tool_call),  # some agents never announce the call itself
    )


def _with_question(state: Conversation, fact: Question, now: int) -> Conversation:
    """Return the conversation after a question was asked or settled."""
    if fact.status != "pending":
        return replace(state, questions=_without(state.questions, fact.id))
    return replace(state, questions=state.questions | {fact.id: OpenQuestion(fact=fact, since=now)})


def _with_settings(
    session: AcpSession | None,
    fact: AgentSession | ModeChanged | ModelChanged | ConfigChanged | CommandsAvailable,
    now: int,
) -> AcpSession | None:
    """Return the agent's session with what the fact changes: modes, models, options or commands.

    Create the session if there is none yet. An AgentSession replaces everything but the commands.
    """
    if isinstance(fact, AgentSession):
        return _attached_session(session, fact, now)
    session = session or AcpSession(id="", since=now)  # some agents send updates before the session exists
    match fact:
        case ModeChanged():
            return replace(session, modes=_with_current(session.modes, "currentModeId", fact.mode_id))
        case ModelChanged():
            return replace(session, models=_with_current(session.models, "currentModelId", fact.model_id))
        case ConfigChanged():
            return replace(session, config_options=fact.config_options)
        case CommandsAvailable():
            return replace(session, commands=fact.commands)


def _attached_session(session: AcpSession | None, fact: AgentSession, now: int) -> AcpSession:
    """Return the session that the agent created, loaded or resumed."""
    same = session is not None and session.id == fact.acp_session_id
    return AcpSession(
        id=fact.acp_session_id,
        since=session.since if session is not None and same else now,
        modes=fact.modes,
        models=fact.models,
        config_options=fact.config_options,
        commands=session.commands if session is not None else [],
    )


def _with_current(choices: Any, key: str, value: str) -> dict[str, Any]:
    """Return an agent's modes or models with the current one changed."""
    return {**choices, key: value} if isinstance(choices, dict) else {key: value}


def _with_traffic(
    state: Conversation,
    fact: RequestSent | RequestAnswered | NoticeSent | RequestReceived | ReplySent | Diagnostic,
    now: int,
) -> Conversation:
    """Return the conversation after a JSON-RPC line was sent, received or skipped."""
    traffic = state.traffic
    match fact:
        case RequestSent():
            call = PendingCall(method=fact.method, since=now, params=fact.params)
            traffic = replace(traffic, sent=fact.n, calls=traffic.calls | {fact.n: call})
        case RequestAnswered():
            traffic = replace(traffic, calls=_without(traffic.calls, fact.n))
        case RequestReceived():
            ask = PendingAgentRequest(rpc_id=fact.rpc_id, method=fact.method, since=now, params=fact.params)
            traffic = replace(traffic, asks=traffic.asks | {fact.id: ask})
        case ReplySent():
            traffic = replace(traffic, sent=fact.n, asks=_without(traffic.asks, fact.id))
        case NoticeSent():
            traffic = replace(traffic, sent=fact.n)
        case Diagnostic():
            if fact.skipping is not None or fact.skipped is not None:
                traffic = replace(traffic, skipping=fact.skipping)
    turn = state.turn
    if turn is not None and isinstance(fact, NoticeSent) and fact.method == "session/cancel":
        turn = replace(turn, cancelling=True)
    return replace(state, traffic=traffic, turn=turn)


def _after_run(state: Conversation) -> Conversation:
    """Return the conversation without what ends with the process; session, plan and usage remain."""
    return Conversation(session=state.session, plan=state.plan, usage=state.usage, recap=state.recap)


def _merged_usage(usage: Usage, fact: Usage) -> Usage:
    """Return the usage with the reported values replaced."""
    return Usage(
        used=usage.used if fact.used is None else fact.used,
        size=usage.size if fact.size is None else fact.size,
        cost=usage.cost if fact.cost is None else fact.cost,
        turn=usage.turn if fact.turn is None else fact.turn,
    )


def _without(items: dict[Any, Any], key: Any) -> dict[Any, Any]:
    """Return the dictionary without one key."""
    return {name: item for name, item in items.items() if name != key}
