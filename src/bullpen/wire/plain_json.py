"""Encode structs of text and whole numbers only; their JSON can be stored without a second check.

Most events are such structs. Values that may hold anything an agent sends (NaN, deep nesting) go through
`wire/json.py`.
"""

from functools import lru_cache

from msgspec import Struct, inspect, json

_LEAVES = (
    inspect.StrType,
    inspect.IntType,
    inspect.BoolType,
    inspect.NoneType,
    inspect.EnumType,
    inspect.LiteralType,
)
_NUL = b"\\u0000"

_encoder = json.Encoder()


def plain_json(value: Struct) -> bytes | None:
    """Return the JSON of a plain struct; None if it is not plain, or has text that no database accepts."""
    if not is_plain(type(value)):
        return None
    try:
        data = _encoder.encode(value)
    except UnicodeEncodeError:  # half of a surrogate pair
        return None
    return None if _NUL in data else data


@lru_cache(maxsize=256)
def is_plain(struct: type[Struct]) -> bool:
    """Return whether a struct type can hold only text and whole numbers, nested to a fixed depth."""
    return _is_bounded(inspect.type_info(struct), ())


def _is_bounded(kind: inspect.Type, enclosing: tuple[type, ...]) -> bool:
    """Return whether a type can hold only text and whole numbers. `enclosing` are the structs around it."""
    match kind:
        case inspect.UnionType():
            return all(_is_bounded(each, enclosing) for each in kind.types)
        case inspect.ListType() | inspect.VarTupleType():
            return _is_bounded(kind.item_type, enclosing)
        case inspect.DictType():
            return _is_bounded(kind.key_type, enclosing) and _is_bounded(kind.value_type, enclosing)
        case inspect.StructType():
            within = (*enclosing, kind.cls)
            return kind.cls not in enclosing and all(_is_bounded(field.type, within) for field in kind.fields)
        case _:
            return isinstance(kind, _LEAVES)
