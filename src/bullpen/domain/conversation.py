"""The facts of a conversation with an agent: prompts, answers, tool calls, permissions and protocol traffic.

Names and shapes are part of the protocol. The agent's own objects (a tool call, a plan, a mode) are kept as
sent: nothing is dropped because it does not validate.
"""

from typing import Any, ClassVar, Self

import msgspec
from msgspec import UNSET, Struct, UnsetType

from .events import Fact

TURN_FAILED = "the turn failed"  # prefix of the message about a failed turn


def request_id(worker_id: str, run: int, offset: int) -> str:
    """Return the id of an agent's request, made from the offset of its line, so that it never changes."""
    return f"{worker_id}.{run}.{offset}"


class ForwardedFrom(Struct, frozen=True, kw_only=True, rename="camel"):
    """The worker whose content a prompt forwards: its last `answer`, or the `diff` of its workspace."""

    worker_id: str
    role: str
    what: str


class UserPrompt(Fact, frozen=True, kw_only=True):
    """A user sent a prompt to the agent. `from` is set if the prompt forwards content of another worker."""

    text: str
    prompt_id: str
    image_ids: tuple[str, ...] = ()
    sender: str | None = None
    origin: ForwardedFrom | UnsetType = msgspec.field(default=UNSET, name="from")


class UserEcho(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The agent repeated a user message; this is not a prompt from Bullpen."""

    content: Any
    message_id: str | None = None


class AgentMessage(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of the agent's answer in Markdown. Pieces are concatenated; the last has `partial: false`."""

    text: str
    partial: bool
    message_id: str | None = None


class AgentThought(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of the agent's reasoning text; pieces are concatenated like those of AgentMessage."""

    text: str
    partial: bool
    message_id: str | None = None


class AgentContent(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A block of the agent's answer that is not text: an image, audio, or a resource."""

    content: Any
    message_id: str | None = None
    thought: bool = False


class OpaqueAgentData:
    """Mixin for facts whose data is the agent's own object, stored unchanged."""

    __slots__ = ()

    type: ClassVar[str]
    call: dict[str, Any]

    def to_data(self) -> Any:
        """Return the agent's object, unchanged."""
        return self.call

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """Return the fact with stored data: the agent's object itself, not a struct of fields.

        Raise ValidationError if the data is not an object.
        """
        if not isinstance(data, dict):
            raise msgspec.ValidationError(f"{cls.type} is an object")
        return cls(call=data)  # type: ignore[call-arg]


class ToolCall(OpaqueAgentData, Fact, frozen=True, kw_only=True):
    """The agent announced a tool call."""

    call: dict[str, Any]


class ToolCallUpdate(OpaqueAgentData, Fact, frozen=True, kw_only=True):
    """The agent reported progress or the result of a tool call."""

    call: dict[str, Any]


class Plan(Fact, frozen=True, kw_only=True):
    """The agent's whole current plan."""

    entries: list[Any]


class Permission(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A permission request: one event with status `pending`, then one with `selected` or `cancelled`.

    `tool_call` is what a user needs to decide. `announced` names the parts that came from an earlier
    announcement and not from the request itself.
    """

    id: str
    tool_call: dict[str, Any]
    options: list[Any]
    status: str
    option_id: str | None = None
    by: str | None = None
    announced: tuple[str, ...] = ()


class Question(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A form or URL for the user.

    Its events have status `pending`, then `accepted`, `declined` or `cancelled`.
    """

    id: str
    message: str
    status: str
    schema: Any = None
    url: str | None = None
    answer: Any = None
    by: str | None = None


class FileRead(Fact, frozen=True, kw_only=True):
    """The agent read a file of the workspace through Bullpen."""

    path: str
    size: int


class FileWrite(Fact, frozen=True, kw_only=True):
    """The agent wrote a file of the workspace through Bullpen."""

    path: str
    size: int


class TurnStart(Fact, frozen=True, kw_only=True):
    """The agent began to work on a prompt."""

    prompt_id: str


class TurnEnd(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The turn ended. `stop_reason` is the agent's word, `error`, or `unknown` if the agent gave none."""

    stop_reason: str
    error: str | None = None

    @property
    def failure(self) -> str | None:
        """The message for a user about a failed turn; None if the turn did not fail."""
        if self.stop_reason not in ("error", "unknown"):
            return None
        return f"{TURN_FAILED}: {self.error or 'the agent gave no reason'}"


class AgentInitialized(Fact, frozen=True, kw_only=True):
    """The agent answered `initialize` with its name and capabilities."""

    result: dict[str, Any]


class AgentSession(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The agent created, loaded or resumed its own session."""

    acp_session_id: str
    how: str
    modes: Any = None
    models: Any = None
    config_options: list[Any] | None = None


class ConversationReset(Fact, frozen=True, kw_only=True):
    """The earlier conversation is abandoned: the next process starts a new one."""


class ModeChanged(Fact, frozen=True, kw_only=True):
    """The agent's mode changed."""

    mode_id: str


class ModelChanged(Fact, frozen=True, kw_only=True):
    """The agent's model changed."""

    model_id: str


class ConfigChanged(Fact, frozen=True, kw_only=True):
    """All configuration options of the agent with their current values."""

    config_options: list[Any]


class CommandsAvailable(Fact, frozen=True, kw_only=True):
    """The slash commands that the agent offers now."""

    commands: list[Any]


class Usage(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """How full the context is, and the cost so far. `turn` is the agent's own record of one turn's usage."""

    used: int | float | None = None
    size: int | float | None = None
    cost: Any = None
    turn: Any = None


class SessionInfo(Fact, frozen=True, kw_only=True):
    """Title and other information that the agent reports about its session."""

    info: dict[str, Any]


class UnknownUpdate(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """An update of unknown type, or of another session of the agent: stored and shown unchanged."""

    update: Any
    acp_session_id: str | None = None


class Diagnostic(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """Output that is not part of the protocol: an invalid line, or one that is too long.

    `skipping` is the offset at which a line that is too long begins; `skipped` is the length it had in the
    end.
    """

    text: str
    data: Any = None
    skipping: int | None = None
    skipped: int | None = None


class RequestSent(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """Bullpen sent a request. `n` is the number of its line in the outbox and its JSON-RPC id."""

    n: int
    method: str
    params: Any = None


class RequestAnswered(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The agent answered request `n`."""

    n: int
    method: str
    error: dict[str, Any] | None = None


class NoticeSent(Fact, frozen=True, kw_only=True):
    """Bullpen sent a line that needs no answer."""

    n: int
    method: str


class RequestReceived(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The agent sent a request that waits for an answer. `rpc_id` is the agent's id for it."""

    id: str
    rpc_id: Any
    method: str
    params: Any = None


class ReplySent(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """Bullpen sent the answer to a request. `id` names the request if it had to wait for a user."""

    n: int
    method: str
    id: str | None = None
