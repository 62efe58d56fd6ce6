"""The projection of usage: tokens and costs of each turn, and their sums by day, turn, session and more."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace
from sqlalchemy import ColumnElement, Connection, func, literal, null, select

from ..domain.conversation import ConversationReset, TurnEnd, TurnStart, Usage
from ..domain.events import Event
from ..domain.usage import Money, TokenCounts, cost_of, tokens_of
from .append import Append
from .statements import insert_rows
from .tables import purges, repositories, sessions, usage, workers

Row = dict[str, Any]

DAY_MS = 86_400_000
_TOKEN_FIELDS = TokenCounts.__struct_fields__
_RELEVANT_FACTS = frozenset({TurnStart, ConversationReset, Usage, TurnEnd})


class UsageFilters(Struct, frozen=True, kw_only=True):
    """Which turns to add up the usage of; None does not filter. Times are milliseconds since the epoch."""

    repo_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    after: int | None = None
    before: int | None = None


class UsageTotals(Struct, frozen=True, kw_only=True):
    """The usage of a group of turns.

    `at` is the time of its first report and `seq` its event, if the group has one session.
    """

    key: str | None = None
    title: str = ""
    session_id: str | None = None
    seq: int | None = None
    at: int = 0
    turns: int = 0
    tokens: TokenCounts = TokenCounts()
    costs: tuple[Money, ...] = ()


def write_usage(connection: Connection, appends: Iterable[Append]) -> None:
    """Insert the reported usage, in the transaction of its events."""
    insert_rows(connection, usage, [row for append in appends for row in _rows(append)])


def read_usage(
    connection: Connection, group: str, filters: UsageFilters, limit: int, offset: int = 0
) -> tuple[list[UsageTotals], UsageTotals]:
    """Return the usage of each group of turns, and of all turns together.

    `offset`: by how many milliseconds a day begins before the day in UTC.
    """
    grouping = _groupings(offset)[group]
    conditions = _conditions(filters)
    if hidden := connection.execute(select(purges)).scalars().all():
        conditions.append(usage.c.session_id.notin_(hidden))
    groups = _read_groups(connection, grouping, conditions)
    groups.sort(key=_first_time if grouping.by_time else _amount, reverse=True)
    if group == "day":
        groups = [replace(each, key=_day(each.key)) for each in groups]
    total = _read_groups(connection, _UsageGrouping(literal(""), literal("")), conditions)
    return groups[:limit], total[0] if total else UsageTotals()


def _rows(append: Append) -> Iterator[Row]:
    """Yield the usage rows for the events of an append."""
    known = append.before.conversations
    turns = {id: state.turn.prompt_id for id, state in known.items() if state.turn}
    costs = {id: state.usage.cost for id, state in known.items()}
    for event in [entry.event for entry in append.entries if type(entry.event.fact) in _RELEVANT_FACTS]:
        worker_id = event.worker_id or ""
        match event.fact:
            case TurnStart() as fact:
                turns[worker_id] = fact.prompt_id
            case ConversationReset():
                costs.pop(worker_id, None)
            case Usage() as fact:
                tokens, money = tokens_of(fact), cost_of(fact, costs.get(worker_id))
                if money:
                    costs[worker_id] = fact.cost
                if tokens or (money and money.amount):
                    yield _row(append, event, turns.get(worker_id), tokens, money)
            case TurnEnd():
                yield _row(append, event, turns.pop(worker_id, None)) | {"turns": 1}


def _row(
    append: Append,
    event: Event,
    prompt_id: str | None,
    tokens: TokenCounts | None = None,
    money: Money | None = None,
) -> Row:
    """Return the row of one usage report."""
    return {
        "session_id": append.snapshot.id,
        "seq": event.seq,
        "worker_id": event.worker_id,
        "timestamp": event.timestamp,
        "prompt_id": prompt_id,
        "turns": 0,
        "cost": money.amount if money else 0.0,
        "currency": money.currency if money else None,
    } | {f"{name}_tokens": count for name, count in asdict(tokens or TokenCounts()).items()}


class _UsageGrouping(Struct, frozen=True):
    """How to group turns: the key of a group, and the columns that describe it."""

    key: Any
    title: Any
    session_id: Any = null()
    by_time: bool = False  # sort by time, newest first; else by usage


def _groupings(offset: int) -> dict[str, _UsageGrouping]:
    """Return the ways to group usage, by name."""
    session_id, agent_id = usage.c.session_id, workers.c.agent_id
    return {
        "day": _UsageGrouping((usage.c.timestamp + offset) // DAY_MS, literal(""), by_time=True),
        "turn": _UsageGrouping(usage.c.prompt_id, sessions.c.title, session_id, by_time=True),
        "session": _UsageGrouping(session_id, sessions.c.title, session_id),
        "repository": _UsageGrouping(sessions.c.repo_id, repositories.c.name),
        "agent": _UsageGrouping(agent_id, agent_id),
    }


def _conditions(filters: UsageFilters) -> list[ColumnElement[bool]]:
    """Return the SQL conditions of the usage filters."""
    equal = (
        (sessions.c.repo_id, filters.repo_id),
        (workers.c.agent_id, filters.agent_id),
        (usage.c.session_id, filters.session_id),
    )
    conditions = [named == value for named, value in equal if value is not None]
    if filters.after is not None:
        conditions.append(usage.c.timestamp >= filters.after)
    if filters.before is not None:
        conditions.append(usage.c.timestamp < filters.before)
    return conditions


def _read_groups(
    connection: Connection, grouping: _UsageGrouping, conditions: Sequence[ColumnElement[bool]]
) -> list[UsageTotals]:
    """Return the usage totals of each group."""
    key, session_id = grouping.key.label("key"), grouping.session_id.label("of_session")
    sums = [func.sum(usage.c[name]).label(name) for name in ("turns", "cost")]
    sums += [func.sum(usage.c[f"{name}_tokens"]).label(name) for name in _TOKEN_FIELDS]
    first = [func.min(usage.c[name]).label(name) for name in ("timestamp", "seq")]
    query = (
        select(key, session_id, usage.c.currency, func.min(grouping.title).label("title"), *first, *sums)
        .join(sessions, sessions.c.id == usage.c.session_id)
        .outerjoin(workers, workers.c.id == usage.c.worker_id)
        .outerjoin(repositories, repositories.c.id == sessions.c.repo_id)
        .where(*conditions)
        .group_by("key", "of_session", usage.c.currency)
        .order_by(usage.c.currency)
    )
    groups: dict[tuple[Any, Any], UsageTotals] = {}
    for row in connection.execute(query):
        group = (row.key, row.of_session)
        groups[group] = _add_row(groups.get(group), row)
    return list(groups.values())


def _add_row(known: UsageTotals | None, row: Any) -> UsageTotals:
    """Return the usage totals of a group with one more row.

    There is a row for each currency, and one for usage without a price.
    """
    known = known or UsageTotals(
        key=_text(row.key), title=row.title or "", session_id=row.of_session, at=row.timestamp
    )
    tokens = {name: getattr(known.tokens, name) + int(getattr(row, name)) for name in _TOKEN_FIELDS}
    cost = () if row.currency is None else (Money(round(row.cost, 6), row.currency),)
    seq = row.seq if known.seq is None else min(known.seq, row.seq)
    return replace(
        known,
        seq=seq if known.session_id else None,
        at=min(known.at, row.timestamp),
        turns=known.turns + int(row.turns),
        tokens=TokenCounts(**tokens),
        costs=(*known.costs, *cost),
    )


def _text(key: Any) -> str | None:
    """Return the key of a group as text; None stays."""
    return None if key is None else str(key)


def _day(key: str | None) -> str:
    """Return a day, counted from the epoch, as an ISO date."""
    return datetime.fromtimestamp(int(key or 0) * DAY_MS / 1000, UTC).date().isoformat()


def _first_time(used: UsageTotals) -> int:
    """Return the time of the first report, by which groups are sorted."""
    return used.at


def _amount(used: UsageTotals) -> tuple[float, int, int]:
    """Return cost, tokens and turns, by which groups are sorted."""
    return sum(cost.amount for cost in used.costs), used.tokens.total, used.turns
