"""The facts of a conversation with an agent: what was asked, said, done, allowed, and what is still open.

Names and shapes are the contract's. What an agent says in its own words (a tool call, a plan, a mode) is
kept in its own words: nothing is dropped because it does not validate.
"""

from typing import Any, ClassVar, Self

import msgspec
from msgspec import UNSET, Struct, UnsetType

from .events import Fact

TURN_FAILED = "the turn failed"  # how what a person reads of such a turn begins


def request_id(worker_id: str, run: int, offset: int) -> str:
    """The name of an agent's request: where its line begins, the same however often it is read."""
    return f"{worker_id}.{run}.{offset}"


class ForwardedFrom(Struct, frozen=True, kw_only=True, rename="camel"):
    """The worker of which a prompt passes something on: its last `answer`, or the `diff` of its workspace."""

    worker_id: str
    role: str
    what: str


class UserPrompt(Fact, frozen=True, kw_only=True):
    """`from` is there when a person passes on what another worker said."""

    text: str
    prompt_id: str
    image_ids: tuple[str, ...] = ()
    sender: str | None = None
    origin: ForwardedFrom | UnsetType = msgspec.field(default=UNSET, name="from")


class UserEcho(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """What the agent says the user said; not a prompt of ours."""

    content: Any
    message_id: str | None = None


class AgentMessage(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of raw markdown; pieces simply join. `partial: false` carries the last, perhaps empty."""

    text: str
    partial: bool
    message_id: str | None = None


class AgentThought(Fact, frozen=True, kw_only=True, omit_defaults=True):
    text: str
    partial: bool
    message_id: str | None = None


class AgentContent(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A block of an answer that is not text: an image, audio, a resource."""

    content: Any
    message_id: str | None = None
    thought: bool = False


class OpaqueAgentData:
    """Data that is the agent's own object, whatever is in it."""

    __slots__ = ()

    type: ClassVar[str]
    call: dict[str, Any]

    def to_data(self) -> Any:
        return self.call

    @classmethod
    def from_data(cls, data: Any) -> Self:
        if not isinstance(data, dict):
            raise msgspec.ValidationError(f"{cls.type} is an object")
        return cls(call=data)  # type: ignore[call-arg]


class ToolCall(OpaqueAgentData, Fact, frozen=True, kw_only=True):
    call: dict[str, Any]


class ToolCallUpdate(OpaqueAgentData, Fact, frozen=True, kw_only=True):
    call: dict[str, Any]


class Plan(Fact, frozen=True, kw_only=True):
    """The whole plan, as it stands now."""

    entries: list[Any]


class Permission(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A question with options: `pending` when asked, then once more, `selected` or `cancelled`.

    `tool_call` is what a person has to see; what of it the question itself did not say is `announced`.
    """

    id: str
    tool_call: dict[str, Any]
    options: list[Any]
    status: str
    option_id: str | None = None
    by: str | None = None
    announced: tuple[str, ...] = ()


class Question(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A form (or an address to visit): `pending`, then `accepted`, `declined` or `cancelled`."""

    id: str
    message: str
    status: str
    schema: Any = None
    url: str | None = None
    answer: Any = None
    by: str | None = None


class FileRead(Fact, frozen=True, kw_only=True):
    path: str
    size: int


class FileWrite(Fact, frozen=True, kw_only=True):
    path: str
    size: int


class TurnStart(Fact, frozen=True, kw_only=True):
    prompt_id: str


class TurnEnd(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """`stop_reason` is the agent's word, or `error`, or `unknown` when it gave none."""

    stop_reason: str
    error: str | None = None

    @property
    def failure(self) -> str | None:
        """What a person reads of a turn that failed; None for any other."""
        if self.stop_reason not in ("error", "unknown"):
            return None
        return f"{TURN_FAILED}: {self.error or 'the agent gave no reason'}"


class AgentInitialized(Fact, frozen=True, kw_only=True):
    """The handshake: what the agent is and can, in its own words."""

    result: dict[str, Any]


class AgentSession(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The agent has a session of its own for us: a new one, or the old one loaded or resumed."""

    acp_session_id: str
    how: str
    modes: Any = None
    models: Any = None
    config_options: list[Any] | None = None


class ConversationReset(Fact, frozen=True, kw_only=True):
    """What was said before is not gone back to: the next process begins anew."""


class ModeChanged(Fact, frozen=True, kw_only=True):
    mode_id: str


class ModelChanged(Fact, frozen=True, kw_only=True):
    model_id: str


class ConfigChanged(Fact, frozen=True, kw_only=True):
    """All options with their values, as they are now."""

    config_options: list[Any]


class CommandsAvailable(Fact, frozen=True, kw_only=True):
    commands: list[Any]


class Usage(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """How full the context is and what it cost so far; `turn` is what one turn used, in its own words."""

    used: int | float | None = None
    size: int | float | None = None
    cost: Any = None
    turn: Any = None


class SessionInfo(Fact, frozen=True, kw_only=True):
    """What the agent says of its session: a title, a date."""

    info: dict[str, Any]


class UnknownUpdate(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """Something we have no word for, or of a session that is not ours: kept, and shown plainly."""

    update: Any
    acp_session_id: str | None = None


class Diagnostic(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """Something that is no part of the protocol: a stray line, or one that is left out.

    `skipping` is where a line begins that is too long; `skipped` how long it was in the end.
    """

    text: str
    data: Any = None
    skipping: int | None = None
    skipped: int | None = None


class RequestSent(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A request of ours is in flight; `n` is its line in the outbox and its id on the wire."""

    n: int
    method: str
    params: Any = None


class RequestAnswered(Fact, frozen=True, kw_only=True, omit_defaults=True):
    n: int
    method: str
    error: dict[str, Any] | None = None


class NoticeSent(Fact, frozen=True, kw_only=True):
    """A line that wants no answer."""

    n: int
    method: str


class RequestReceived(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """The agent waits for us; `rpc_id` is its own number, which only the answer needs."""

    id: str
    rpc_id: Any
    method: str
    params: Any = None


class ReplySent(Fact, frozen=True, kw_only=True, omit_defaults=True):
    """A line that answers the agent; `id` names the request when it had to wait."""

    n: int
    method: str
    id: str | None = None
