"""Define the answers of the server to searches and usage reports."""

from datetime import datetime

from msgspec import field

from .shapes import EPOCH, ServerShape


class SearchHit(ServerShape, frozen=True, kw_only=True):
    """A search result: an event of a session, with the part of its text that matched."""

    session_id: str
    seq: int
    type: str
    role: str
    snippet: str
    session_title: str = ""
    repo_id: str | None = None
    worker_id: str | None = None
    agent_id: str | None = None
    timestamp: datetime = EPOCH
    run: int | None = None
    offset: int | None = None


class SearchResults(ServerShape, frozen=True, kw_only=True):
    """The answer to a search, newest result first."""

    results: list[SearchHit]


class Cost(ServerShape, frozen=True, kw_only=True):
    """An amount of money that an agent reported."""

    amount: float
    currency: str


class UsageTotals(ServerShape, frozen=True, kw_only=True):
    """The tokens and cost of some turns, as far as their agents report them."""

    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_read_tokens: int = 0
    cached_write_tokens: int = 0
    thought_tokens: int = 0
    total_tokens: int = 0
    costs: list[Cost] = field(default_factory=list)


class UsageGroup(UsageTotals, frozen=True, kw_only=True):
    """The totals of one day, turn, session, repository or agent; `key` is the date or the id."""

    key: str | None = None
    title: str = ""
    session_id: str | None = None
    seq: int | None = None
    since: datetime = EPOCH


class UsageReport(ServerShape, frozen=True, kw_only=True):
    """Totals per group; `by` is day, turn, session, repository or agent."""

    by: str
    groups: list[UsageGroup]
    total: UsageTotals
