"""What turns cost: tokens and money, as agents report them, each in its own words."""

from typing import Any

from msgspec import Struct

from .conversation import Usage

MOST = 10**15  # anything above is nonsense, and would not fit the database


class TokenCounts(Struct, frozen=True, kw_only=True):
    """Of one turn; 0 for what an agent does not tell apart."""

    input: int = 0
    output: int = 0
    cached_read: int = 0
    cached_write: int = 0
    thought: int = 0
    total: int = 0


class Money(Struct, frozen=True):
    amount: float
    currency: str


def tokens_of(usage: Usage) -> TokenCounts | None:
    """What one turn used; None when nothing is said of that."""
    match usage.turn:
        case {"token_count": dict(words)}:  # Gemini's
            return _tokens(words)
        case dict(words):
            return _tokens(words)
        case _:
            return None


def cost_of(usage: Usage, before: Any) -> Money | None:
    """What was spent since the agent last said what all cost so far; less than that is a new count."""
    now, then = _money(usage.cost), _money(before)
    if now is None:
        return None
    if then is None or then.currency != now.currency or then.amount > now.amount:
        return now
    return Money(now.amount - then.amount, now.currency)


def _tokens(words: dict[str, Any]) -> TokenCounts | None:
    parts = {
        "input": _number(words, "inputTokens", "input_tokens"),
        "output": _number(words, "outputTokens", "output_tokens"),
        "cached_read": _number(words, "cachedReadTokens", "cached_read_tokens"),
        "cached_write": _number(words, "cachedWriteTokens", "cached_write_tokens"),
        "thought": _number(words, "thoughtTokens", "thought_tokens"),
    }
    total = _number(words, "totalTokens", "total_tokens") or sum(parts.values())
    return TokenCounts(**parts, total=total) if total else None


def _number(words: dict[str, Any], *names: str) -> int:
    for name in names:
        value = words.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < MOST:
            return int(value)
    return 0


def _money(cost: Any) -> Money | None:
    match cost:
        case {"amount": int() | float() as amount} if not isinstance(amount, bool) and 0 <= amount < MOST:
            currency = cost.get("currency")
            return Money(float(amount), currency if isinstance(currency, str) and currency else "USD")
        case _:
            return None
