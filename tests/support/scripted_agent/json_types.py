"""The types of JSON values. Only the type checker imports `typing`: the import takes 3 ms."""

__all__ = ["Any", "Json"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]
else:
    Any, Json = object, dict
