"""What the server says when it was asked to find things again, or to add up what was used."""

from datetime import datetime

from msgspec import field

from .shapes import EPOCH, ServerShape


class SearchHit(ServerShape, frozen=True, kw_only=True):
    """A moment of a session, with some of what was said then."""

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
    results: list[SearchHit]


class Cost(ServerShape, frozen=True, kw_only=True):
    amount: float
    currency: str


class UsageTotals(ServerShape, frozen=True, kw_only=True):
    """What some turns used, as far as their agents say."""

    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_read_tokens: int = 0
    cached_write_tokens: int = 0
    thought_tokens: int = 0
    total_tokens: int = 0
    costs: list[Cost] = field(default_factory=list)


class UsageGroup(UsageTotals, frozen=True, kw_only=True):
    """The same of a day, a turn, a session, a repository or an agent: its id, or the date."""

    key: str | None = None
    title: str = ""
    session_id: str | None = None
    seq: int | None = None
    since: datetime = EPOCH


class UsageReport(ServerShape, frozen=True, kw_only=True):
    by: str
    groups: list[UsageGroup]
    total: UsageTotals
