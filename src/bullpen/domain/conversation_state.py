"""What the facts of a conversation add up to: a pure fold, bounded whatever an agent does.

It holds all a new server process needs to go on: in a handshake, in a turn, with a question open.
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
from .tool_calls import Tools, with_tool_call

REATTACHING = frozenset({"session/load", "session/resume"})


class PendingCall(Struct, frozen=True, kw_only=True):
    """A request of ours that has no answer yet."""

    method: str
    since: int
    params: Any = None


class PendingAgentRequest(Struct, frozen=True, kw_only=True):
    """A request of the agent that has no answer yet."""

    rpc_id: Any
    method: str
    since: int
    params: Any = None


class RunTraffic(Struct, frozen=True, kw_only=True):
    """The lines of one run: the number of the last one sent, and what is in flight both ways."""

    sent: int = 0
    calls: dict[int, PendingCall] = {}
    asks: dict[str, PendingAgentRequest] = {}
    skipping: int | None = None  # where a line began that is being left out

    @property
    def next_n(self) -> int:
        """The number of our next line: every line is told by one fact, so they can be counted."""
        return self.sent + 1

    def waits_for(self, *methods: str) -> bool:
        return any(call.method in methods for call in self.calls.values())


class AcpSession(Struct, frozen=True, kw_only=True):
    """The agent's own session, and what can be set in it."""

    id: str
    since: int
    modes: Any = None
    models: Any = None
    config_options: list[Any] | None = None
    commands: list[Any] = []


class Turn(Struct, frozen=True, kw_only=True):
    prompt_id: str
    since: int
    cancelling: bool = False


class OpenTextBlock(Struct, frozen=True):
    """Text that is being said; its end is still to come."""

    type: str
    message_id: str | None = None


class OpenPermission(Struct, frozen=True, kw_only=True):
    """A permission nobody has given or refused."""

    fact: Permission
    since: int


class OpenQuestion(Struct, frozen=True, kw_only=True):
    fact: Question
    since: int


class Conversation(Struct, frozen=True, kw_only=True):
    """One agent worker, as it is after an event."""

    agent: dict[str, Any] | None = None  # its answer to initialize
    session: AcpSession | None = None
    turn: Turn | None = None
    block: OpenTextBlock | None = None
    tools: Tools = {}
    plan: list[Any] = []
    permissions: dict[str, OpenPermission] = {}
    questions: dict[str, OpenQuestion] = {}
    usage: Usage = Usage()
    traffic: RunTraffic = RunTraffic()
    loaded: bool = False  # the agent went back to its session by loading it, and no turn began since
    recap: bool = False  # the agent's session is new to what was said before: the next prompt tells it

    @property
    def replaying(self) -> bool:
        """Whether what is said now was said before: the agent repeats its history while it loads.

        Resuming must not repeat, but some agents do; nothing new can be said before either is answered.
        """
        return self.traffic.waits_for(*REATTACHING)

    @property
    def acp_session_id(self) -> str | None:
        """The agent's name for its session; it outlives the process, so that the next can go back to it."""
        return self.session.id or None if self.session else None

    @property
    def asking(self) -> bool:
        return bool(self.permissions or self.questions)

    def capable(self, *path: str) -> bool:
        """Whether the agent said it can: `{}` counts as a yes, a missing or false value as a no."""
        value: Any = (self.agent or {}).get("agentCapabilities")
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value is not None and value is not False


def fold_conversation(state: Conversation, event: Event) -> Conversation:  # noqa: PLR0911, PLR0912 (a table)
    """The conversation after one more event of its worker."""
    fact, now = event.fact, event.timestamp
    match fact:
        case AgentMessage() | AgentThought():
            return replace(state, block=OpenTextBlock(fact.type, fact.message_id) if fact.partial else None)
        case ToolCall() | ToolCallUpdate():
            return replace(state, tools=with_tool_call(state.tools, fact.call))
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
            return replace(state, turn=None, block=None, tools={})
        case Usage():
            return replace(state, usage=_added(state.usage, fact))
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


def _with_permission(state: Conversation, fact: Permission, now: int) -> Conversation:
    if fact.status != "pending":
        return replace(state, permissions=_without(state.permissions, fact.id))
    return replace(
        state,
        permissions=state.permissions | {fact.id: OpenPermission(fact=fact, since=now)},
        tools=with_tool_call(state.tools, fact.tool_call),  # it may never have been announced
    )


def _with_question(state: Conversation, fact: Question, now: int) -> Conversation:
    if fact.status != "pending":
        return replace(state, questions=_without(state.questions, fact.id))
    return replace(state, questions=state.questions | {fact.id: OpenQuestion(fact=fact, since=now)})


def _with_settings(
    session: AcpSession | None,
    fact: AgentSession | ModeChanged | ModelChanged | ConfigChanged | CommandsAvailable,
    now: int,
) -> AcpSession | None:
    if isinstance(fact, AgentSession):
        return _attached(session, fact, now)
    session = session or AcpSession(id="", since=now)  # some agents speak before their session is made
    match fact:
        case ModeChanged():
            return replace(session, modes=_with_current(session.modes, "currentModeId", fact.mode_id))
        case ModelChanged():
            return replace(session, models=_with_current(session.models, "currentModelId", fact.model_id))
        case ConfigChanged():
            return replace(session, config_options=fact.config_options)
        case CommandsAvailable():
            return replace(session, commands=fact.commands)


def _attached(session: AcpSession | None, fact: AgentSession, now: int) -> AcpSession:
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
    return {**choices, key: value} if isinstance(choices, dict) else {key: value}


def _with_traffic(
    state: Conversation,
    fact: RequestSent | RequestAnswered | NoticeSent | RequestReceived | ReplySent | Diagnostic,
    now: int,
) -> Conversation:
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
    """What a process takes with it; its session, its plan and what it used can be gone back to."""
    return Conversation(session=state.session, plan=state.plan, usage=state.usage, recap=state.recap)


def _added(usage: Usage, fact: Usage) -> Usage:
    return Usage(
        used=usage.used if fact.used is None else fact.used,
        size=usage.size if fact.size is None else fact.size,
        cost=usage.cost if fact.cost is None else fact.cost,
        turn=usage.turn if fact.turn is None else fact.turn,
    )


def _without(things: dict[Any, Any], key: Any) -> dict[Any, Any]:
    return {name: each for name, each in things.items() if name != key}
