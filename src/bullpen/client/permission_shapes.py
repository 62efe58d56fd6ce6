"""Define the values in a permission request: a tool call and the options, both made by an agent.

The server passes on what an agent sends. A field with an unexpected type has its default here, so that a
mistake of one agent does not hide the requests of the others.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import fields

Value = TypeVar("Value", bound=Struct)


class PermissionOption(Struct, frozen=True, kw_only=True, rename="camel"):
    """One of the answers that an agent offers; `kind` is `allow_once`, `reject_always` and so on."""

    option_id: str = ""
    name: str = ""
    kind: str = ""


class ToolCallLocation(Struct, frozen=True, kw_only=True, rename="camel"):
    """A file, and perhaps a line in it, that a tool call is about."""

    path: str = ""
    line: int | None = None


class ToolCallContent(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a tool call shows: a `diff` (path and texts), a `terminal`, or `content` (a block of any type)."""

    type: str = ""
    path: str = ""
    old_text: str | None = None
    new_text: str | None = None
    terminal_id: str | None = None
    content: Any = None


class ToolCall(Struct, frozen=True, kw_only=True, rename="camel"):
    """A call of a tool, as the agent describes it. Each tool has its own form of input and output."""

    tool_call_id: str = ""
    title: str = ""
    kind: str = ""
    status: str = ""
    raw_input: Any = None
    raw_output: Any = None
    location_data: list[Any] = msgspec.field(default_factory=list, name="locations")
    content_data: list[Any] = msgspec.field(default_factory=list, name="content")

    @property
    def locations(self) -> list[ToolCallLocation]:
        """The files that the call is about."""
        return read_values(self.location_data, ToolCallLocation)

    @property
    def content(self) -> list[ToolCallContent]:
        """What the call shows."""
        return read_values(self.content_data, ToolCallContent)


def read_values(values: list[Any], kind: type[Value]) -> list[Value]:
    """Return the objects in a list of an agent as typed values; anything else is left out."""
    return [read_value(each, kind) for each in values if isinstance(each, dict)]


def read_value(value: Mapping[str, Any], kind: type[Value]) -> Value:
    """Return an object of an agent as a typed value."""
    return kind(
        **{
            each.name: _field(value[each.encode_name], each)
            for each in fields(kind)
            if each.encode_name in value
        }
    )


def _field(value: Any, field: msgspec.structs.FieldInfo) -> Any:
    """Return the value of a field, or its default if it has another type."""
    try:
        return msgspec.convert(value, field.type)
    except msgspec.ValidationError:
        return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
