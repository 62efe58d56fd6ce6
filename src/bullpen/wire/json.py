"""Encode and decode JSON so that any value an agent sends can be stored and shown."""

import json
import math
from types import NoneType
from typing import Any

import msgspec

from ..domain.errors import Invalid

MAX_DEPTH = 200
TOO_DEEP = f"[left out: nested more than {MAX_DEPTH} levels deep]"

_SCALARS = frozenset({str, int, bool, NoneType})

_encoder = msgspec.json.Encoder()


def encode(value: Any) -> bytes:
    """Return the value as JSON.

    What JSON cannot hold (a lone surrogate, NaN) is replaced as in `storable`.
    """
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, RecursionError):
        return _encoder.encode(_cleaned(msgspec.to_builtins(value), MAX_DEPTH))


def decode(data: bytes | str) -> Any:
    """Return the value of a JSON text; tolerate NaN, lone surrogates and bad UTF-8, else raise Invalid."""
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        raise Invalid("JSON is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeError, ValueError):
        return _decode_leniently(data)


def storable(value: Any) -> tuple[Any, bytes]:
    """Return the value, without anything that a database or a browser refuses, and its JSON.

    Most values are returned unchanged.
    """
    try:
        data = _encoder.encode(value)
    except (UnicodeEncodeError, RecursionError):
        data = b""
    if not data or _needs_cleaning(value, data):
        value = _cleaned(value, MAX_DEPTH)
        data = _encoder.encode(value)
    return value, data


def _decode_leniently(data: bytes | str) -> Any:
    """Decode what the strict decoder refused, with Python's parser; replace values that cannot be stored.

    Raise Invalid if it is not JSON.
    """
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    try:
        value = json.loads(text, parse_constant=lambda _: None)
    except RecursionError:
        raise Invalid("JSON is nested too deeply") from None
    except ValueError as error:
        raise Invalid(f"not JSON: {error}") from None
    return _cleaned(value, MAX_DEPTH)


def _needs_cleaning(value: Any, data: bytes) -> bool:
    """Return whether a value may hold what a database or a browser refuses. `data` is its JSON."""
    # A level takes at least two characters, so short data is never deep.
    brackets = 0 if len(data) <= 2 * MAX_DEPTH else data.count(b"{") + data.count(b"[")
    if brackets > MAX_DEPTH and _depth_exceeds(value, MAX_DEPTH):
        return True
    # The encoder writes NaN as null and NUL as an escape, so both can be searched in its output.
    return data.find(b"\\u0000") >= 0 or (data.find(b"null") >= 0 and _holds_nan(value))


def _holds_nan(value: Any) -> bool:
    """Return whether a number in the value is not finite."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return False
    for each in value:  # noqa: SIM110 (every event is checked: only look into values that may hold one)
        if type(each) not in _SCALARS and each and _holds_nan(each):
            return True
    return False


def _depth_exceeds(value: Any, levels: int) -> bool:
    """Return whether the value is nested deeper than some levels."""
    if isinstance(value, dict):
        return levels == 0 or any(_depth_exceeds(each, levels - 1) for each in value.values())
    if isinstance(value, list | tuple):
        return levels == 0 or any(_depth_exceeds(each, levels - 1) for each in value)
    return False


def _cleaned(value: Any, levels: int) -> Any:
    """Return the value with invalid text, NaN and values nested too deeply replaced."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        if levels == 0:
            return TOO_DEEP
        return {clean_text(key): _cleaned(each, levels - 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return TOO_DEEP if levels == 0 else [_cleaned(each, levels - 1) for each in value]
    return value


def clean_text(text: str) -> str:
    """Return the text with lone surrogates as U+FFFD and NUL, which PostgreSQL refuses, as U+2400."""
    text = text.replace("\0", "\u2400")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Through UTF-16, so that two adjacent surrogates become the character they encode.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
