"""Structs of text and whole numbers only: their JSON is storable as it is, and most events are such.

What may hold anything an agent sends (numbers that are none, endless nesting) is looked at by `wire/json.py`.
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
    """The JSON of a plain struct; None when it is not, or when there is text in it no database takes."""
    if not is_plain(type(value)):
        return None
    try:
        data = _encoder.encode(value)
    except UnicodeEncodeError:  # half of a surrogate pair
        return None
    return None if _NUL in data else data


@lru_cache(maxsize=256)
def is_plain(struct: type[Struct]) -> bool:
    return _bounded(inspect.type_info(struct), ())


def _bounded(kind: inspect.Type, around: tuple[type, ...]) -> bool:
    """Whether all that fits in is text and whole numbers, no deeper than it is written."""
    match kind:
        case inspect.UnionType():
            return all(_bounded(each, around) for each in kind.types)
        case inspect.ListType() | inspect.VarTupleType():
            return _bounded(kind.item_type, around)
        case inspect.DictType():
            return _bounded(kind.key_type, around) and _bounded(kind.value_type, around)
        case inspect.StructType():
            within = (*around, kind.cls)
            return kind.cls not in around and all(_bounded(field.type, within) for field in kind.fields)
        case _:
            return isinstance(kind, _LEAVES)
