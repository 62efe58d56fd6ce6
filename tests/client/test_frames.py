"""Parse the messages of a terminal's socket into frames."""

import json
from typing import Any

import pytest

from bullpen.client import ActivityFrame, ErrorFrame, ExitFrame, HistoryFrame, OutputFrame, SizeFrame
from bullpen.client.frames import InputAccepted, parse_frame


def test_a_binary_frame_has_an_offset_and_bytes() -> None:
    frame = parse_frame((258).to_bytes(8, "big") + b"\xffdata")
    assert frame == OutputFrame(258, b"\xffdata")
    assert isinstance(frame, OutputFrame)
    assert frame.end == 263


@pytest.mark.parametrize(
    ("message", "frame"),
    [
        ({"type": "ack", "n": 3}, InputAccepted(3)),
        ({"type": "exit", "exitCode": 2, "signal": None, "offset": 9}, ExitFrame(2, None)),
        ({"type": "size", "cols": 80, "rows": 24, "owner": True}, SizeFrame(80, 24, True)),
        ({"type": "activity", "state": "asking", "why": "a question"}, ActivityFrame("asking", "a question")),
        ({"type": "error", "error": "forbidden", "message": "no"}, ErrorFrame("forbidden", "no")),
        (
            {"type": "history", "run": 2, "offset": 5, "cols": 80, "rows": 24, "data": "ä"},
            HistoryFrame(5, 80, 24, "ä".encode(), 2),
        ),
    ],
)
def test_a_text_frame_is_parsed_by_its_type(message: dict[str, Any], frame: object) -> None:
    assert parse_frame(json.dumps(message)) == frame


@pytest.mark.parametrize("message", [{"type": "something new"}, {}, [], {"type": "ack", "n": "3"}])
def test_an_unknown_message_is_ignored(message: object) -> None:
    assert parse_frame(json.dumps(message)) is None
