"""Tokens and cost, as agents report them."""

from typing import Any

import pytest

from bullpen.domain.conversation import Usage
from bullpen.domain.usage import Money, TokenCounts, cost_of, tokens_of


@pytest.mark.parametrize(
    ("turn", "tokens"),
    [
        (
            {"inputTokens": 2732, "outputTokens": 10, "totalTokens": 2742},
            TokenCounts(input=2732, output=10, total=2742),
        ),
        (
            {"inputTokens": 5, "outputTokens": 3, "cachedReadTokens": 90, "thoughtTokens": 2},
            TokenCounts(input=5, output=3, cached_read=90, thought=2, total=100),
        ),
        (
            {"token_count": {"input_tokens": 181, "output_tokens": 10}, "model_usage": [{}]},
            TokenCounts(input=181, output=10, total=191),
        ),
        (
            {
                "input_tokens": 1,
                "output_tokens": 2,
                "cached_read_tokens": 4,
                "cached_write_tokens": 8,
                "thought_tokens": 16,
            },
            TokenCounts(input=1, output=2, cached_read=4, cached_write=8, thought=16, total=31),
        ),
        (
            {
                "inputTokens": 1,
                "outputTokens": 2,
                "cachedReadTokens": 4,
                "cachedWriteTokens": 8,
                "thoughtTokens": 16,
                "totalTokens": 99,
            },
            TokenCounts(input=1, output=2, cached_read=4, cached_write=8, thought=16, total=99),
        ),
        (
            {"inputTokens": 10**15, "outputTokens": 10**15 - 1},
            TokenCounts(output=10**15 - 1, total=10**15 - 1),
        ),
        ({"inputTokens": 2.7, "total_tokens": 5}, TokenCounts(input=2, total=5)),
        ({"inputTokens": "many", "outputTokens": True, "totalTokens": -1}, None),
        ({"inputTokens": 1e300, "totalTokens": float("nan")}, None),
        ({}, None),
        (None, None),
        ("a lot", None),
    ],
)
def test_the_token_counts_of_each_agent_are_read_in_its_own_format(
    turn: Any, tokens: TokenCounts | None
) -> None:
    assert tokens_of(Usage(turn=turn)) == tokens


@pytest.mark.parametrize(
    ("before", "now", "spent"),
    [
        (None, {"amount": 0.5, "currency": "EUR"}, Money(0.5, "EUR")),
        ({"amount": 0.25, "currency": "USD"}, {"amount": 1}, Money(0.75, "USD")),
        ({"amount": 2, "currency": "USD"}, {"amount": 0.5, "currency": "USD"}, Money(0.5, "USD")),
        ({"amount": 2, "currency": "USD"}, {"amount": 3, "currency": "EUR"}, Money(3, "EUR")),
        ({"amount": 2}, {"amount": 2}, Money(0, "USD")),
        ("nonsense", {"amount": 2}, Money(2, "USD")),
        (None, {"amount": "free"}, None),
        (None, {"amount": True}, None),
        (None, {"amount": -1}, None),
        (None, {"amount": 10**15}, None),
        (None, {"amount": 0, "currency": ""}, Money(0, "USD")),
        (None, {"amount": 1, "currency": 5}, Money(1, "USD")),
        (None, None, None),
    ],
)
def test_the_cost_of_a_turn_is_the_increase_of_the_total(before: Any, now: Any, spent: Money | None) -> None:
    assert cost_of(Usage(cost=now), before) == spent
