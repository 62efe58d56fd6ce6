"""The timeline of a playback: markers of events, and the offset of a terminal at each time."""

import struct
from pathlib import Path

import pytest

from bullpen.domain.conversation import AgentMessage, Permission, Question, ToolCall, TurnEnd, UserPrompt
from bullpen.domain.events import Error, Event, Fact, WorkerFailed
from bullpen.log.recording import Recording
from bullpen.log.timeline import (
    MAX_HELD_POINTS,
    MAX_POINTS,
    TerminalTimeline,
    TimelineMarker,
    find_markers,
    terminal_timeline,
)

ENTRY = struct.Struct("!QqHH")


def permission(status: str) -> Permission:
    return Permission(id="p", tool_call={"title": "rm"}, options=[], status=status)


@pytest.mark.parametrize(
    ("fact", "marked"),
    [
        (UserPrompt(text="do\n it", prompt_id="p"), ("prompt", "do it")),
        (ToolCall(call={"title": "ls", "kind": "execute"}), ("tool", "ls")),
        (ToolCall(call={"kind": "execute"}), ("tool", "execute")),
        (ToolCall(call={}), ("tool", "")),
        (permission("pending"), ("permission", "rm")),
        (permission("selected"), None),
        (Question(id="q", message="Who?", status="pending"), ("question", "Who?")),
        (Question(id="q", message="Who?", status="declined"), None),
        (Error(message="x" * 120), ("error", "x" * 120)),
        (Error(message="x" * 121), ("error", "x" * 119 + "…")),
        (WorkerFailed(error="crashed"), ("error", "crashed")),
        (TurnEnd(stop_reason="error", error="no model"), ("error", "no model")),
        (TurnEnd(stop_reason="end_turn"), None),
        (AgentMessage(text="x", partial=False), None),
    ],
)
def test_an_event_with_a_marker_has_a_label(fact: Fact, marked: tuple[str, str] | None) -> None:
    expected = [TimelineMarker(7, 1000, *marked, "w")] if marked else []
    assert find_markers([Event(7, 1000, fact, "w", "role")]) == expected


def spool(directory: Path, size: int, *entries: tuple[int, int, int, int]) -> Recording:
    (directory / f"{0:020d}.idx").write_bytes(b"".join(ENTRY.pack(*entry) for entry in entries))
    (directory / f"{0:020d}.bin").write_bytes(bytes(size))
    return Recording(directory)


def test_the_line_of_a_terminal_has_the_points_and_sizes_of_its_index(tmp_path: Path) -> None:
    entries = [
        (0, 1_999_999, 80, 24),
        (2, 2_000_000, 0, 0),
        (3, 3_000_000, 80, 24),
        (4, 4_000_000, 80, 30),
        (5, 5_000_000, 90, 30),
    ]
    assert terminal_timeline("w", 2, spool(tmp_path, 9, *entries)) == TerminalTimeline(
        worker_id="w",
        run=2,
        start=0,
        end=9,
        points=[(1, 0), (2, 2), (3, 3), (4, 4), (5, 5)],
        sizes=[(0, 80, 24), (4, 80, 30), (5, 90, 30)],
    )
    assert terminal_timeline("w", 1, Recording(tmp_path / "nowhere")) == TerminalTimeline(
        worker_id="w", run=1, start=0, end=0, points=[], sizes=[]
    )


@pytest.mark.parametrize(
    "count",
    [
        1,
        MAX_POINTS,
        MAX_POINTS + 1,
        3 * MAX_POINTS,
        MAX_HELD_POINTS,
        MAX_HELD_POINTS + 1,
        MAX_HELD_POINTS + 2,
        3 * MAX_HELD_POINTS,
    ],
)
def test_many_points_are_thinned_evenly_and_keep_the_first_and_the_last(tmp_path: Path, count: int) -> None:
    line = terminal_timeline(
        "w", 1, spool(tmp_path, count, *((n, n * 1_000_000, 0, 0) for n in range(count)))
    )
    assert len(line.points) == min(count, MAX_POINTS)
    assert (line.points[0], line.points[-1]) == ((0, 0), (count - 1, count - 1))
    steps = {after[1] - before[1] for before, after in zip(line.points, line.points[1:], strict=False)}
    even = count / MAX_POINTS
    assert all(abs(step - even) <= max(1, even / 16) for step in steps)
