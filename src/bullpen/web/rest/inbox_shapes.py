"""JSON shapes of the inbox and of the rules for automatic answers."""

from typing import Annotated, Any, Literal

from pydantic import Field

from ..numbers import MAX_SAFE_INTEGER
from .agent_shapes import OptionShape
from .shapes import Shape


class RefusedShape(Shape):
    """What the sandbox refused, as the grant that would allow it."""

    kind: Literal["host", "read", "write"]
    target: str


class InboxItemShape(Shape):
    id: str
    kind: Literal["permission", "question", "asking", "refused", "failed", "finished"]
    session_id: str
    session_title: str
    repo_id: str | None
    worker_id: str
    role: str
    agent_id: str | None
    seq: int | None
    text: str
    tool_call: dict[str, Any] | None
    options: list[OptionShape]
    form: dict[str, Any] | None
    url: str | None
    refused: RefusedShape | None
    created_at: str


class InboxShape(Shape):
    items: list[InboxItemShape]


class SeenShape(Shape):
    seq: Annotated[int | None, Field(ge=0, le=MAX_SAFE_INTEGER)] = None


class RuleShape(Shape):
    name: str
    agent_id: str
    kind: str
    answer: Literal["allow", "reject"]
    path: str | None
    command: str | None
    added: bool


class RulesShape(Shape):
    rules: list[RuleShape]
