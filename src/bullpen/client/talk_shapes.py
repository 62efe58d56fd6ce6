"""What the server says about talking: agents, what they ask, what waits for them and for people."""

from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from .shapes import EPOCH, ServerShape


class Agent(ServerShape, frozen=True, kw_only=True):
    """An agent that is defined; `missing` names the program it lacks, `logged_in` is a hint."""

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
    agents: list[Agent]


class PromptResult(ServerShape, frozen=True, kw_only=True):
    """What became of a prompt; `seq` is that of the event that tells of it."""

    prompt_id: str
    seq: int
    queued: bool


class PendingRequest(ServerShape, frozen=True, kw_only=True):
    """What an agent waits for a person with."""

    id: str
    worker_id: str
    role: str
    created_at: datetime = EPOCH


class Permission(PendingRequest, frozen=True, kw_only=True):
    """What an agent asks leave for; `tool_call` and `options` are in its own words."""

    tool_call: dict[str, Any] = field(default_factory=dict)
    options: list[Any] = field(default_factory=list)


class PermissionList(ServerShape, frozen=True, kw_only=True):
    permissions: list[Permission]


class Question(PendingRequest, frozen=True, kw_only=True):
    """A form an agent wants filled in."""

    message: str
    form: Any = None
    url: str | None = None


class QuestionList(ServerShape, frozen=True, kw_only=True):
    questions: list[Question]


class AskedQuestion(ServerShape, frozen=True, kw_only=True):
    """A question a worker asked by itself, and the event that asks it."""

    id: str
    seq: int


class AskedQuestionState(ServerShape, frozen=True, kw_only=True):
    """What has become of it: `pending`, `accepted` with an answer, `declined` or `cancelled`."""

    id: str
    status: str
    answer: str | None = None
    by: str | None = None


class Message(ServerShape, frozen=True, kw_only=True):
    """Something a person, an agent or the system said; `content` has a `type`."""

    id: str
    seq: int
    role: str
    content: dict[str, Any]
    timestamp: datetime = EPOCH


class MessageList(ServerShape, frozen=True, kw_only=True):
    messages: list[Message]


class QueueItem(Struct, frozen=True, kw_only=True):
    """A message that waits for the agent."""

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
        """Whether it waits for the agent alone, and not for a time of its own."""
        return self.scheduled_time is None or self.scheduled_time <= datetime.now(UTC)


class Queue(Struct, frozen=True, kw_only=True):
    messages: list[QueueItem]
    count: int
    paused: bool = False


class InboxItem(ServerShape, frozen=True, kw_only=True):
    """One thing that waits for a person; `seq` is there for what happened and only has to be seen."""

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
    items: list[InboxItem]


class Rule(ServerShape, frozen=True, kw_only=True):
    """Which permissions are answered automatically, and how."""

    name: str
    agent_id: str
    kind: str
    answer: str
    path: str | None = None
    command: str | None = None
    added: bool = True


class RuleList(ServerShape, frozen=True, kw_only=True):
    rules: list[Rule]
