"""JSON from other programs is decoded and made storable; a harmless value is returned unchanged."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.domain.errors import Invalid
from bullpen.wire.json import MAX_DEPTH, TOO_DEEP, clean_text, decode, encode, storable

any_text = st.text(st.characters(exclude_categories=()))  # with surrogates and NUL
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner) | st.dictionaries(any_text, inner),
    max_leaves=20,
)


def nested(levels: int) -> Any:
    value: Any = "core"
    for _ in range(levels):
        value = [value]
    return value


def depth(value: Any) -> int:
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def cleaned(value: Any) -> Any:
    return storable(value)[0]


def test_a_harmless_value_is_returned_unchanged() -> None:
    value = {"text": "naïve ☃ 😀", "list": [1, 2.5, None, True], "null": None}
    assert cleaned(value) is value


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\udc00", "\ufffd"),
        ("\ud83d\ude00", "😀"),  # a surrogate pair is one character
        ("a\0b", "a\u2400b"),
        ("\\u0000", "\\u0000"),  # six characters, not NUL
        (math.nan, None),
        ([math.inf, -math.inf, 1.5], [None, None, 1.5]),
        ({"k\0": {"\ud800": math.nan}}, {"k\u2400": {"\ufffd": None}}),
        (10**40, 10**40),
    ],
)
def test_values_that_a_database_refuses_are_replaced(value: Any, kept: Any) -> None:
    assert cleaned(value) == kept


def test_nesting_is_cut_at_the_limit_with_a_note() -> None:
    assert cleaned(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    cut = cleaned(nested(MAX_DEPTH + 1))
    assert depth(cut) == MAX_DEPTH
    assert TOO_DEEP in json.dumps(cut)


def test_a_wide_value_is_not_cut() -> None:
    wide = [[each] for each in range(1000)]
    assert cleaned(wide) is wide


@given(any_json)
def test_any_value_can_be_stored_and_read_back(value: Any) -> None:
    kept, data = storable(value)
    assert json.loads(data) == kept == json.loads(encode(kept))
    assert b"\\u0000" not in data.replace(b"\\\\", b"")
    data.decode("utf-8")


@given(any_json)
def test_cleaning_a_second_time_changes_nothing(value: Any) -> None:
    once = cleaned(value)
    assert cleaned(once) is once


@given(any_json)
def test_any_value_can_be_encoded(value: Any) -> None:
    json.loads(encode(value).decode("utf-8"))


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}),
        (b'"\\ud800"', "\ufffd"),
        (b'{"a": NaN, "b": -Infinity, "c": 1e400}', {"a": None, "b": None, "c": None}),
        (b'"\xff\xfe"', "\ufffd\ufffd"),
        ('"☃"', "☃"),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
    ],
)
def test_unusual_json_of_real_programs_is_decoded(data: bytes | str, value: Any) -> None:
    assert decode(data) == value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"nothing",
        b"[1,]",
        b"[" * 100_000 + b"]" * 100_000,
        b"[NaN," * 100_000 + b"1" + b"]" * 100_000,
        b"9" * 10_000,
    ],
)
def test_invalid_json_is_refused(data: bytes) -> None:
    with pytest.raises(Invalid):
        decode(data)


@given(st.binary())
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    try:
        value = decode(data)
    except Invalid:
        return
    storable(value)


@given(any_text)
def test_clean_text_is_accepted_by_any_database(text: str) -> None:
    kept = clean_text(text)
    assert "\0" not in kept
    kept.encode("utf-8")
    if "\0" not in text and text.isprintable():
        assert kept == text
