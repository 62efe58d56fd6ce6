"""Tool calls that are not finished, each as the agent last described it."""

from typing import Any

FINISHED = frozenset({"completed", "failed", "cancelled"})
MAX_OPEN = 256
LONGEST = 64 << 10  # of the free-form parts; the event keeps them whole

Tools = dict[str, dict[str, Any]]


def with_tool_call(tools: Tools, news: dict[str, Any]) -> Tools:
    """The open calls after one was announced, described further, or finished. Unknown ones are added."""
    id = news.get("toolCallId")
    if not isinstance(id, str):
        return tools
    call = merged(tools.get(id), news)
    if call["status"] in FINISHED:
        return {name: each for name, each in tools.items() if name != id}
    _shorten(call, news)
    after = {**tools, id: call}
    if len(after) > MAX_OPEN:
        del after[next(iter(after))]
    return after


def merged(call: dict[str, Any] | None, news: dict[str, Any]) -> dict[str, Any]:
    """The call with what is new: values and lists replace, what is not said stays."""
    said = {key: value for key, value in news.items() if value is not None and key != "sessionUpdate"}
    whole = {"status": "pending", **(call or {}), **said}
    if call and isinstance(call.get("_meta"), dict) and isinstance(said.get("_meta"), dict):
        whole["_meta"] = {**call["_meta"], **said["_meta"]}
    if not isinstance(whole["status"], str):
        whole["status"] = "pending"
    return whole


def _shorten(call: dict[str, Any], news: dict[str, Any]) -> None:
    """Leaves out what is new and too long; the rest was looked at when it was new."""
    for key in news:
        if key in call and _length(call[key], LONGEST) > LONGEST:
            del call[key]


def _length(value: Any, enough: int) -> int:
    """About how long a value is as text; stops counting beyond `enough`."""
    if isinstance(value, str):
        return len(value)
    if not isinstance(value, (dict, list)):
        return 8
    total, parts = (sum(map(len, value)), value.values()) if isinstance(value, dict) else (0, value)
    for each in parts:
        total += 8 + _length(each, enough - total)
        if total > enough:
            break
    return total
