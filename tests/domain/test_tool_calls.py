"""Open tool calls: updates are merged, lists are replaced, finished calls and the oldest ones are removed."""

from typing import Any

import pytest

from bullpen.domain.tool_calls import MAX_OPEN, MAX_PART_LENGTH, Tools, with_tool_call


def after(*calls: dict[str, Any]) -> Tools:
    tools: Tools = {}
    for call in calls:
        tools = with_tool_call(tools, call)
    return tools


def test_an_update_adds_fields_and_replaces_lists() -> None:
    first = {
        "sessionUpdate": "tool_call",
        "toolCallId": "t",
        "title": "a",
        "locations": [1, 2],
        "kind": "edit",
    }
    second = {"toolCallId": "t", "locations": [3], "title": None, "status": "in_progress"}
    assert after(first, second) == {
        "t": {"status": "in_progress", "toolCallId": "t", "title": "a", "locations": [3], "kind": "edit"}
    }


def test_meta_of_an_update_is_merged() -> None:
    first = {"toolCallId": "t", "_meta": {"terminal_info": {"terminal_id": "x"}}}
    second = {"toolCallId": "t", "_meta": {"terminal_output": {"data": "hi"}}}
    assert after(first, second)["t"]["_meta"].keys() == {"terminal_info", "terminal_output"}


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_finished_call_is_removed(status: str) -> None:
    assert after({"toolCallId": "t"}, {"toolCallId": "t", "status": status}) == {}
    assert after({"toolCallId": "never announced", "status": status}) == {}


@pytest.mark.parametrize("call", [{"toolCallId": "t"}, {"toolCallId": "t", "status": 5}])
def test_a_call_without_a_status_is_pending(call: dict[str, Any]) -> None:
    assert after(call)["t"]["status"] == "pending"


def test_an_unknown_status_is_kept() -> None:
    assert after({"toolCallId": "t", "status": "dreaming"})["t"]["status"] == "dreaming"


@pytest.mark.parametrize("call", [{}, {"toolCallId": 5}, {"toolCallId": None, "title": "x"}])
def test_a_call_without_an_id_is_ignored(call: dict[str, Any]) -> None:
    assert after(call) == {}


def test_the_oldest_call_is_removed_when_there_are_too_many() -> None:
    tools = after(*({"toolCallId": str(n)} for n in range(MAX_OPEN + 3)))
    assert len(tools) == MAX_OPEN
    assert next(iter(tools)) == "3"


@pytest.mark.parametrize(
    "huge",
    [
        "x" * (MAX_PART_LENGTH + 1),
        ["x" * 1000] * 100,
        {"k": {"k": "x" * (MAX_PART_LENGTH + 1)}},
        {"x" * (MAX_PART_LENGTH + 1): 1},
    ],
)
def test_a_huge_part_of_a_call_is_kept_only_in_its_event(huge: Any) -> None:
    call = after({"toolCallId": "t", "title": "a", "rawOutput": huge, "content": ["small"]})["t"]
    assert call == {"status": "pending", "toolCallId": "t", "title": "a", "content": ["small"]}
