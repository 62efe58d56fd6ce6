"""The open tool calls of an agent, each as the agent last described it, with bounded size."""

from typing import Any

FINISHED = frozenset({"completed", "failed", "cancelled"})
MAX_OPEN = 256
MAX_PART_LENGTH = 64 << 10  # characters of a field in the snapshot; the event keeps the whole field

Tools = dict[str, dict[str, Any]]


def with_tool_call(tools: Tools, update: dict[str, Any]) -> Tools:
    """Return the open tool calls after one was announced, updated or finished. Unknown ids are added."""
    id = tool_call_id(update)
    if id is None:
        return tools
    call = merge_tool_call(tools.get(id), update)
    if call["status"] in FINISHED:
        return {name: each for name, each in tools.items() if name != id}
    _drop_long_fields(call, update)
    after = {**tools, id: call}
    if len(after) > MAX_OPEN:
        del after[next(iter(after))]
    return after


def tool_call_id(call: dict[str, Any]) -> str | None:
    """Return the id of a tool call as the agent describes it, or None if it has no valid one."""
    id = call.get("toolCallId")
    return id if isinstance(id, str) else None


def merge_tool_call(call: dict[str, Any] | None, update: dict[str, Any]) -> dict[str, Any]:
    """Return a tool call with an update applied: fields of the update replace, missing and null ones stay."""
    changed = {key: value for key, value in update.items() if value is not None and key != "sessionUpdate"}
    merged = {"status": "pending", **(call or {}), **changed}
    if call and isinstance(call.get("_meta"), dict) and isinstance(changed.get("_meta"), dict):
        merged["_meta"] = {**call["_meta"], **changed["_meta"]}
    if not isinstance(merged["status"], str):
        merged["status"] = "pending"
    return merged


def _drop_long_fields(call: dict[str, Any], update: dict[str, Any]) -> None:
    """Remove the updated fields of a tool call that are too long to keep in the snapshot."""
    for key in update:
        if key in call and _length(call[key], MAX_PART_LENGTH) > MAX_PART_LENGTH:
            del call[key]


def _length(value: Any, limit: int) -> int:
    """Return the approximate length of a value as text; stop counting beyond `limit`."""
    if isinstance(value, str):
        return len(value)
    if not isinstance(value, (dict, list)):
        return 8
    total, parts = (sum(map(len, value)), value.values()) if isinstance(value, dict) else (0, value)
    for each in parts:
        total += 8 + _length(each, limit - total)
        if total > limit:
            break
    return total
