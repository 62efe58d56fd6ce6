"""Define the answers of the server about agents, conversations, queues, the inbox and rules."""

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

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
    """A permission that an agent requests; it sent `tool_call` and `options` in this form."""

    tool_call: dict[str, Any] = field(default_factory=dict)
    options: list[Any] = field(default_factory=list)


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
    tool_call: dict[str, Any] | None = None
    options: list[Any] = field(default_factory=list)
    form: Any = None
    url: str | None = None
    created_at: datetime = EPOCH


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
