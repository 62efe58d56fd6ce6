"""JSON as it is kept: fast when all is well, and storable whatever an agent sends."""

import json
import math
from types import NoneType
from typing import Any

import msgspec

from ..domain.errors import Invalid

MAX_DEPTH = 200
TOO_DEEP = f"[left out: nested more than {MAX_DEPTH} levels deep]"

_PLAIN = frozenset({str, int, bool, NoneType})

_encoder = msgspec.json.Encoder()


def encode(value: Any) -> bytes:
    """The value as JSON; what has no place in JSON (a lone surrogate, NaN) is replaced as in `storable`."""
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, RecursionError):
        return _encoder.encode(_cleaned(msgspec.to_builtins(value), MAX_DEPTH))


def decode(data: bytes | str) -> Any:
    """The value a JSON text stands for; forgives what programs send (NaN, lone surrogates, bad UTF-8)."""
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        raise Invalid("JSON is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeError, ValueError):
        return _decode_leniently(data)


def storable(value: Any) -> tuple[Any, bytes]:
    """The value (mostly itself) without anything a database or a browser refuses, and its JSON."""
    try:
        data = _encoder.encode(value)
    except (UnicodeEncodeError, RecursionError):
        data = b""
    if not data or _looks_odd(value, data):
        value = _cleaned(value, MAX_DEPTH)
        data = _encoder.encode(value)
    return value, data


def _decode_leniently(data: bytes | str) -> Any:
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    try:
        value = json.loads(text, parse_constant=lambda _: None)
    except RecursionError:
        raise Invalid("JSON is nested too deeply") from None
    except ValueError as error:
        raise Invalid(f"not JSON: {error}") from None
    return _cleaned(value, MAX_DEPTH)


def _looks_odd(value: Any, data: bytes) -> bool:
    # A level takes two letters at least: short data is never deep.
    brackets = 0 if len(data) <= 2 * MAX_DEPTH else data.count(b"{") + data.count(b"[")
    if brackets > MAX_DEPTH and _depth_exceeds(value, MAX_DEPTH):
        return True
    # The encoder writes NaN as null and NUL as an escape; both only show in what it wrote.
    return data.find(b"\\u0000") >= 0 or (data.find(b"null") >= 0 and _holds_nan(value))


def _holds_nan(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return False
    for each in value:  # noqa: SIM110 (every event comes by here: only what may hold one is looked into)
        if type(each) not in _PLAIN and each and _holds_nan(each):
            return True
    return False


def _depth_exceeds(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        return levels == 0 or any(_depth_exceeds(each, levels - 1) for each in value.values())
    if isinstance(value, list | tuple):
        return levels == 0 or any(_depth_exceeds(each, levels - 1) for each in value)
    return False


def _cleaned(value: Any, levels: int) -> Any:
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
    """U+FFFD for half a surrogate pair; U+2400 (the picture of NUL) for NUL, which PostgreSQL refuses."""
    text = text.replace("\0", "\u2400")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Through UTF-16, so that two halves that stand side by side become the character they mean.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
