"""JSON shapes of tokens and cost."""

from typing import Literal

from .shapes import Shape


class CostShape(Shape):
    amount: float
    currency: str


class UsageTotalsShape(Shape):
    turns: int
    input_tokens: int
    output_tokens: int
    cached_read_tokens: int
    cached_write_tokens: int
    thought_tokens: int
    total_tokens: int
    costs: list[CostShape]


class UsageGroupShape(UsageTotalsShape):
    key: str | None
    title: str
    session_id: str | None
    seq: int | None
    since: str


class UsageShape(Shape):
    by: Literal["day", "turn", "session", "repository", "agent"]
    groups: list[UsageGroupShape]
    total: UsageTotalsShape
