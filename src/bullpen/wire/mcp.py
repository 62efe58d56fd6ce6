"""The Model Context Protocol, as much of it as a server with nothing but tools has to speak."""

from typing import Any

from msgspec import Struct

from . import jsonrpc

NEWEST = "2025-06-18"
VERSIONS = ("2024-11-05", "2025-03-26", NEWEST)


class McpTool(Struct, frozen=True, kw_only=True):
    """Something a model may call; `fields` are JSON schemas by name, those in `required` must be there."""

    name: str
    title: str
    description: str
    fields: dict[str, Any] = {}
    required: tuple[str, ...] = ()
    reads_only: bool = False


class McpCall(Struct, frozen=True, kw_only=True):
    """A tool that is to be run; its answer goes under `id`."""

    id: Any
    name: str
    arguments: dict[str, Any]


class McpCancellation(Struct, frozen=True, kw_only=True):
    """Nobody waits for this call any more."""

    id: Any


class McpAnswer(Struct, frozen=True, kw_only=True):
    """What can be answered at once."""

    line: bytes


Heard = McpCall | McpCancellation | McpAnswer


def hear(message: jsonrpc.Line, name: str, version: str, tools: list[McpTool]) -> Heard | None:  # noqa: PLR0911 (a table)
    """What a client's message asks for; None for what needs nothing."""
    match message:
        case jsonrpc.Request(method="initialize"):
            return _answer(message, _initialized(message.params, name, version))
        case jsonrpc.Request(method="ping"):
            return _answer(message, {})
        case jsonrpc.Request(method="tools/list"):
            return _answer(message, {"tools": [_shown(tool) for tool in tools]})
        case jsonrpc.Request(method="tools/call"):
            return _called(message, tools)
        case jsonrpc.Request():
            return _refusal(message, jsonrpc.METHOD_NOT_FOUND, f"this server has no {message.method}")
        case jsonrpc.Notification(method="notifications/cancelled", params={"requestId": id}):
            return McpCancellation(id=id)
        case jsonrpc.InvalidLine():
            return McpAnswer(line=jsonrpc.error_response(None, jsonrpc.PARSE_ERROR, message.why))
        case _:
            return None


def result(id: Any, text: str, *, failed: bool = False) -> bytes:
    """What a tool has to say; that it failed is for the model to read, not for the protocol."""
    return jsonrpc.response(id, {"content": [{"type": "text", "text": text}], "isError": failed})


def _initialized(params: Any, name: str, version: str) -> dict[str, Any]:
    wanted = params.get("protocolVersion") if isinstance(params, dict) else None
    return {
        "protocolVersion": wanted if wanted in VERSIONS else NEWEST,
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": name, "version": version},
    }


def _shown(tool: McpTool) -> dict[str, Any]:
    schema = {"type": "object", "properties": tool.fields, "required": list(tool.required)}
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": schema | {"additionalProperties": False},
        "annotations": {"readOnlyHint": tool.reads_only},
    }


def _called(message: jsonrpc.Request, tools: list[McpTool]) -> Heard:
    match message.params:
        case {"name": str(name)} if tool := next((each for each in tools if each.name == name), None):
            arguments = message.params.get("arguments") or {}
        case {"name": str(name)}:
            known = ", ".join(each.name for each in tools)
            return _refusal(message, jsonrpc.INVALID_PARAMS, f"the tools are {known}, not {name}")
        case _:
            return _refusal(message, jsonrpc.INVALID_PARAMS, "tools/call needs a name")
    if wrong := _wrong(tool, arguments):
        return _refusal(message, jsonrpc.INVALID_PARAMS, wrong)
    return McpCall(id=message.id, name=name, arguments=arguments)


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
}


def _wrong(tool: McpTool, arguments: Any) -> str | None:
    """What is wrong with the arguments, in a sentence a model can act on."""
    if not isinstance(arguments, dict):
        return "arguments must be an object"
    if missing := [name for name in tool.required if arguments.get(name) in (None, "")]:
        return f"{tool.name} needs {', '.join(missing)}"
    for name, value in arguments.items():
        if name not in tool.fields:
            return f"{tool.name} takes {', '.join(tool.fields) or 'nothing'}, not {name}"
        kind = tool.fields[name]["type"]
        if value is not None and (
            not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")
        ):
            return f"{name} must be of type {kind}"
    return None


def _answer(message: jsonrpc.Request, told: dict[str, Any]) -> McpAnswer:
    return McpAnswer(line=jsonrpc.response(message.id, told))


def _refusal(message: jsonrpc.Request, code: int, why: str) -> McpAnswer:
    return McpAnswer(line=jsonrpc.error_response(message.id, code, why))
