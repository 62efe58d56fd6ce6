"""The server side of the Model Context Protocol, limited to what a server with only tools needs."""

from typing import Any

from msgspec import Struct

from . import jsonrpc

NEWEST_VERSION = "2025-06-18"
VERSIONS = ("2024-11-05", "2025-03-26", NEWEST_VERSION)


class McpTool(Struct, frozen=True, kw_only=True):
    """A tool that a model may call. `fields` are the JSON schemas of its arguments by name."""

    name: str
    title: str
    description: str
    fields: dict[str, Any] = {}
    required: tuple[str, ...] = ()
    reads_only: bool = False


class McpCall(Struct, frozen=True, kw_only=True):
    """A client's request to run a tool. Its answer is sent with `id`."""

    id: Any
    name: str
    arguments: dict[str, Any]


class McpCancellation(Struct, frozen=True, kw_only=True):
    """A notification that the client no longer waits for a tool call."""

    id: Any


class McpAnswer(Struct, frozen=True, kw_only=True):
    """The answer to an MCP message that needs no tool to run."""

    line: bytes


McpMessage = McpCall | McpCancellation | McpAnswer


def read_message(message: jsonrpc.Line, name: str, version: str, tools: list[McpTool]) -> McpMessage | None:  # noqa: PLR0911 (a table)
    """Return the tool call, cancellation or immediate answer for an MCP message, or None if it needs none."""
    match message:
        case jsonrpc.Request(method="initialize"):
            return _answer(message, _initialize_result(message.params, name, version))
        case jsonrpc.Request(method="ping"):
            return _answer(message, {})
        case jsonrpc.Request(method="tools/list"):
            return _answer(message, {"tools": [_tool_json(tool) for tool in tools]})
        case jsonrpc.Request(method="tools/call"):
            return _call(message, tools)
        case jsonrpc.Request():
            return _refusal(message, jsonrpc.METHOD_NOT_FOUND, f"this server has no {message.method}")
        case jsonrpc.Notification(method="notifications/cancelled", params={"requestId": id}):
            return McpCancellation(id=id)
        case jsonrpc.InvalidLine():
            return McpAnswer(line=jsonrpc.error_response(None, jsonrpc.PARSE_ERROR, message.why))
        case _:
            return None


def tool_result(id: Any, text: str, *, failed: bool = False) -> bytes:
    """Return the MCP answer with a tool's output.

    `failed` marks an error that the model reads, not a protocol error.
    """
    return jsonrpc.response(id, {"content": [{"type": "text", "text": text}], "isError": failed})


def _initialize_result(params: Any, name: str, version: str) -> dict[str, Any]:
    """Return the answer to `initialize`: the protocol version and what the server offers."""
    version_of_client = params.get("protocolVersion") if isinstance(params, dict) else None
    return {
        "protocolVersion": version_of_client if version_of_client in VERSIONS else NEWEST_VERSION,
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": name, "version": version},
    }


def _tool_json(tool: McpTool) -> dict[str, Any]:
    """Return the description of a tool for the client."""
    schema = {"type": "object", "properties": tool.fields, "required": list(tool.required)}
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": schema | {"additionalProperties": False},
        "annotations": {"readOnlyHint": tool.reads_only},
    }


def _call(message: jsonrpc.Request, tools: list[McpTool]) -> McpMessage:
    """Return the tool call in an MCP request, or the error answer if it is invalid."""
    match message.params:
        case {"name": str(name)} if tool := next((each for each in tools if each.name == name), None):
            arguments = message.params.get("arguments") or {}
        case {"name": str(name)}:
            known = ", ".join(each.name for each in tools)
            return _refusal(message, jsonrpc.INVALID_PARAMS, f"the tools are {known}, not {name}")
        case _:
            return _refusal(message, jsonrpc.INVALID_PARAMS, "tools/call needs a name")
    if error := _argument_error(tool, arguments):
        # An error of the tool: the model reads it, and calls again with other arguments.
        return McpAnswer(line=tool_result(message.id, error, failed=True))
    return McpCall(id=message.id, name=name, arguments=arguments)


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
}


def _argument_error(tool: McpTool, arguments: Any) -> str | None:
    """Return what is wrong with the arguments, as a sentence for the model; None if they are valid."""
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


def _answer(message: jsonrpc.Request, result: dict[str, Any]) -> McpAnswer:
    """Return the successful answer to an MCP request."""
    return McpAnswer(line=jsonrpc.response(message.id, result))


def _refusal(message: jsonrpc.Request, code: int, why: str) -> McpAnswer:
    """Return the error answer to an MCP request."""
    return McpAnswer(line=jsonrpc.error_response(message.id, code, why))
