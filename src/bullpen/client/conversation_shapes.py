"""Define the answers of the server about agents, conversations, queues, the inbox and rules."""

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from .permission_shapes import PermissionOption, ToolCall, read_value, read_values
from .shapes import EPOCH, ServerShape


class Agent(ServerShape, frozen=True, kw_only=True):
    """An agent that the server can start. `missing` names a program it lacks; `logged_in` may be wrong."""

    id: str
    name: str
    kind: str = "acp"
    description: str = ""
    command: list[str] = field(default_factory=list)
    installed: bool = False
    missing: str | None = None
    install_hint: str = ""
    logged_in: str = "unknown"  # or yes, no; none when it needs no login
    login_command: list[str] = field(default_factory=list)
    default: bool = False


class AgentList(ServerShape, frozen=True, kw_only=True):
    """All defined agents."""

    agents: list[Agent]


class PromptSource(ServerShape, frozen=True, kw_only=True):
    """The worker, by id or role, whose last `answer` or whose `diff` a prompt includes."""

    worker_id: str | None = None
    role: str | None = None
    what: str = "answer"


class PromptResult(ServerShape, frozen=True, kw_only=True):
    """The result of a prompt: sent or queued; `seq` is the event that recorded it."""

    prompt_id: str
    seq: int
    queued: bool


class PendingRequest(ServerShape, frozen=True, kw_only=True):
    """The base of the requests with which an agent waits for a person."""

    id: str
    worker_id: str
    role: str
    created_at: datetime = EPOCH


class Permission(PendingRequest, frozen=True, kw_only=True):
    """A permission that an agent requests. The fields with `_data` are what the agent sent."""

    tool_call_data: dict[str, Any] = field(default_factory=dict, name="toolCall")
    option_data: list[Any] = field(default_factory=list, name="options")

    @property
    def tool_call(self) -> ToolCall:
        """The tool call for which the agent requests the permission."""
        return read_value(self.tool_call_data, ToolCall)

    @property
    def options(self) -> list[PermissionOption]:
        """The answers that the agent offers."""
        return read_values(self.option_data, PermissionOption)


class PermissionList(ServerShape, frozen=True, kw_only=True):
    """The permission requests of a session that wait for an answer."""

    permissions: list[Permission]


class Question(PendingRequest, frozen=True, kw_only=True):
    """A question of an agent: a message with a form to fill in, or a URL to visit."""

    message: str
    form: Any = None
    url: str | None = None


class QuestionList(ServerShape, frozen=True, kw_only=True):
    """The questions of a session that wait for an answer."""

    questions: list[Question]


class AskedQuestion(ServerShape, frozen=True, kw_only=True):
    """A question that a worker's process asked, and the `seq` of its event."""

    id: str
    seq: int


class AskedQuestionState(ServerShape, frozen=True, kw_only=True):
    """The state of such a question: `pending`, `accepted` with an answer, `declined` or `cancelled`."""

    id: str
    status: str
    answer: str | None = None
    by: str | None = None


class Message(ServerShape, frozen=True, kw_only=True):
    """A message of a person, an agent or the system; `content` has a `type`."""

    id: str
    seq: int
    role: str
    content: dict[str, Any]
    timestamp: datetime = EPOCH
    updated_at: datetime = EPOCH


class MessageList(ServerShape, frozen=True, kw_only=True):
    """The messages of a conversation."""

    messages: list[Message]


class QueueItem(Struct, frozen=True, kw_only=True):
    """A message that waits in the queue until the agent is idle."""

    id: str
    message: str
    queued_at: datetime = EPOCH
    image_ids: list[str] = field(default_factory=list)
    client_id: str | None = None
    title: str | None = None
    scheduled_time: datetime | None = None
    state: str = "queued"

    @property
    def is_due(self) -> bool:
        """Whether its scheduled time, if any, has passed."""
        return self.scheduled_time is None or self.scheduled_time <= datetime.now(UTC)


class Queue(Struct, frozen=True, kw_only=True):
    """The message queue of a session."""

    messages: list[QueueItem]
    count: int
    paused: bool = False


class QueueSettings(Struct, frozen=True, kw_only=True):
    """The settings of a session's queue; `inherited` if they are those of the repository or the server."""

    enabled: bool
    delay_seconds: float
    max_size: int
    auto_generate_titles: bool
    inherited: bool


class RefusedAccess(ServerShape, frozen=True, kw_only=True):
    """What the sandbox refused to a program: the kind and target of the grant that would allow it."""

    kind: str
    target: str


class InboxItem(ServerShape, frozen=True, kw_only=True):
    """One thing that waits for a person. `seq` is set if it only has to be seen, not answered."""

    id: str
    kind: str
    session_id: str
    worker_id: str
    role: str
    text: str
    session_title: str = ""
    repo_id: str | None = None
    agent_id: str | None = None
    seq: int | None = None
    tool_call_data: dict[str, Any] | None = field(default=None, name="toolCall")
    option_data: list[Any] = field(default_factory=list, name="options")
    form: Any = None
    url: str | None = None
    refused: RefusedAccess | None = None
    created_at: datetime = EPOCH

    @property
    def tool_call(self) -> ToolCall | None:
        """The tool call for which an agent requests a permission; None for other items."""
        return None if self.tool_call_data is None else read_value(self.tool_call_data, ToolCall)

    @property
    def options(self) -> list[PermissionOption]:
        """The answers that the agent offers, if it requests a permission."""
        return read_values(self.option_data, PermissionOption)


class Inbox(ServerShape, frozen=True, kw_only=True):
    """Everything that waits for a person."""

    items: list[InboxItem]


class Rule(ServerShape, frozen=True, kw_only=True):
    """A rule that answers matching permission requests automatically."""

    name: str
    agent_id: str
    kind: str
    answer: str
    path: str | None = None
    command: str | None = None
    added: bool = True


class RuleList(ServerShape, frozen=True, kw_only=True):
    """The permission rules, in the order in which they are tried."""

    rules: list[Rule]
