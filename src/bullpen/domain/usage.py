"""Token counts and costs of turns, extracted from the various forms in which agents report them."""

from typing import Any

from msgspec import Struct

from .conversation import Usage

MAX_AMOUNT = 10**15  # larger numbers are errors and would not fit into the database


class TokenCounts(Struct, frozen=True, kw_only=True):
    """The tokens of one turn; 0 for a count that the agent does not report separately."""

    input: int = 0
    output: int = 0
    cached_read: int = 0
    cached_write: int = 0
    thought: int = 0
    total: int = 0


class Money(Struct, frozen=True):
    """An amount of money in a currency."""

    amount: float
    currency: str


def tokens_of(usage: Usage) -> TokenCounts | None:
    """Return the tokens that the last turn used, or None if the agent reports none."""
    match usage.turn:
        case {"token_count": dict(counts)}:  # Gemini's
            return _tokens(counts)
        case dict(counts):
            return _tokens(counts)
        case _:
            return None


def cost_of(usage: Usage, before: Any) -> Money | None:
    """Return the cost since `before`, the cost reported earlier, or None if no cost is reported.

    Agents report a running total. If it has become smaller or has another currency, it is a new total.
    """
    current, earlier = _money(usage.cost), _money(before)
    if current is None:
        return None
    if earlier is None or earlier.currency != current.currency or earlier.amount > current.amount:
        return current
    return Money(current.amount - earlier.amount, current.currency)


def _tokens(counts: dict[str, Any]) -> TokenCounts | None:
    """Return the token counts in an agent's own usage record, or None if there are none."""
    parts = {
        "input": _number(counts, "inputTokens", "input_tokens"),
        "output": _number(counts, "outputTokens", "output_tokens"),
        "cached_read": _number(counts, "cachedReadTokens", "cached_read_tokens"),
        "cached_write": _number(counts, "cachedWriteTokens", "cached_write_tokens"),
        "thought": _number(counts, "thoughtTokens", "thought_tokens"),
    }
    total = _number(counts, "totalTokens", "total_tokens") or sum(parts.values())
    return TokenCounts(**parts, total=total) if total else None


def _number(counts: dict[str, Any], *names: str) -> int:
    """Return the first of the named token counts that is a valid number, else 0."""
    for name in names:
        value = counts.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < MAX_AMOUNT:
            return int(value)
    return 0


def _money(cost: Any) -> Money | None:
    """Return the cost in an agent's own record, or None if it is invalid."""
    match cost:
        case {"amount": int() | float() as amount} if (
            not isinstance(amount, bool) and 0 <= amount < MAX_AMOUNT
        ):
            currency = cost.get("currency")
            return Money(float(amount), currency if isinstance(currency, str) and currency else "USD")
        case _:
            return None
