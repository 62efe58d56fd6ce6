"""JSON shapes of prompts, permissions, questions, queues and agents."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from ...domain.sandbox import SandboxLevel
from .shapes import Shape

MAX_ID_LENGTH = 200

Id = Annotated[str, Field(min_length=1, max_length=MAX_ID_LENGTH, pattern=r"^[\x21-\x7e]+$")]


class SnakeShape(BaseModel):
    """A shape with snake_case names, as clients of the queue expect."""

    model_config = ConfigDict(extra="ignore")


class SourceShape(Shape):
    """The worker whose last `answer` or `diff` is forwarded with a prompt."""

    worker_id: str | None = None
    role: str | None = None
    what: str = "answer"


class PromptShape(Shape):
    text: str = ""
    source: Annotated[SourceShape | None, Field(alias="from")] = None
    prompt_id: Id | None = None
    worker_id: str | None = None
    role: str | None = None
    image_ids: tuple[str, ...] = ()
    busy: Literal["queue", "reject", "interrupt"] = "queue"


class PromptedShape(Shape):
    prompt_id: str
    seq: int
    queued: bool


class CancelShape(Shape):
    worker_id: str | None = None


class RestartShape(Shape):
    continue_conversation: bool = True


class RestartWorkerShape(Shape):
    """With `continue_conversation`, an agent is restarted even while it runs."""

    continue_conversation: bool | None = None


class OptionShape(Shape):
    option_id: str
    name: str
    kind: str


class PermissionShape(Shape):
    id: str
    worker_id: str
    role: str
    tool_call: dict[str, Any]
    options: list[OptionShape]
    created_at: str


class PermissionsShape(Shape):
    permissions: list[PermissionShape]


class PermissionAnswerShape(Shape):
    option_id: str


class QuestionShape(Shape):
    id: str
    worker_id: str
    role: str
    message: str
    form: dict[str, Any] | None
    url: str | None
    created_at: str


class QuestionsShape(Shape):
    questions: list[QuestionShape]


OptionText = Annotated[str, Field(min_length=1, max_length=500)]


class NewQuestionShape(Shape):
    message: Annotated[str, Field(min_length=1, max_length=10_000)]
    options: Annotated[tuple[OptionText, ...], Field(max_length=20)] = ()


class AskedQuestionShape(Shape):
    id: str
    seq: int


class AskedQuestionStateShape(Shape):
    id: str
    status: Literal["pending", "accepted", "declined", "cancelled"]
    answer: str | None
    by: str | None


class QuestionAnswerShape(Shape):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


Title = Annotated[str, Field(min_length=1, max_length=200)]


class NewQueueItemShape(SnakeShape):
    message: str = ""
    image_ids: tuple[str, ...] = ()
    client_id: str | None = None
    title: Title | None = None
    scheduled_time: AwareDatetime | None = None


class QueueEditShape(SnakeShape):
    """Omitted fields stay. A title of null is made again; a time of null means as soon as possible."""

    message: str | None = None
    title: Title | None = None
    scheduled_time: AwareDatetime | None = None

    def changes(self) -> dict[str, Any]:
        """Return the fields in the request, with the time in milliseconds."""
        changes = self.model_dump(exclude_unset=True)
        if changes.get("message", "") is None:
            del changes["message"]
        if "scheduled_time" in changes:
            changes["scheduled_time"] = in_ms(self.scheduled_time)
        return changes


def in_ms(time: datetime | None) -> int | None:
    """Return a time in milliseconds since the epoch, or None without a time."""
    return None if time is None else round(time.timestamp() * 1000)


class MoveShape(SnakeShape):
    direction: Literal["up", "down"]


class QueueItemShape(SnakeShape):
    id: str
    message: str
    image_ids: list[str]
    queued_at: str
    client_id: str | None
    title: str | None
    scheduled_time: str | None
    state: Literal["queued", "sending", "failed"]


class QueueShape(SnakeShape):
    messages: list[QueueItemShape]
    count: int
    paused: bool


class QueueSettingsShape(SnakeShape):
    enabled: bool
    delay_seconds: float
    max_size: int
    auto_generate_titles: bool
    inherited: bool


class QueueSettingsEditShape(SnakeShape):
    """Omitted fields stay; `inherited` restores the settings of the repository or the server."""

    enabled: bool | None = None
    delay_seconds: float | None = None
    max_size: int | None = None
    auto_generate_titles: bool | None = None
    inherited: bool = False


class ImageShape(Shape):
    id: str
    mime_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    size: int


class OfferShape(Shape):
    fs: bool
    terminal: bool


class AgentShape(Shape):
    id: str
    name: str
    description: str
    kind: Literal["acp", "pty"]
    command: list[str]
    env: dict[str, str]
    pass_env: list[str]
    offer: OfferShape
    state: list[str]
    sandbox: SandboxLevel | None
    added: bool
    installed: bool
    missing: str | None
    install_hint: str
    logged_in: Literal["yes", "no", "unknown", "none"]
    login_command: list[str]
    default: bool


class AgentsShape(Shape):
    agents: list[AgentShape]


class ModeChoiceShape(Shape):
    mode_id: str


class ModelChoiceShape(Shape):
    model_id: str


class OptionChoiceShape(Shape):
    value: str | bool


class ActivityShape(Shape):
    activity: Literal["active", "asking", "idle"]
    why: Annotated[str, Field(max_length=200)] | None = None
