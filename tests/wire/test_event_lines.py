"""Events as lines of a file are read back exactly as they were written, or refused."""

import json
from typing import Any
from zlib import crc32

import pytest

from bullpen.wire import event_lines as lines
from bullpen.wire.event_lines import MAX_VALUES, event_line, read_head, read_line

EVENT = {
    "seq": 7,
    "type": "error",
    "timestamp": "2026-01-01T00:00:01.234Z",
    "workerId": "w",
    "role": "shell",
    "data": {"message": 'a "quoted" ]}, text'},
}
WIRE = json.dumps(EVENT, separators=(",", ":")).encode()


def changed(**changes: Any) -> bytes:
    return json.dumps(EVENT | changes).encode()


def test_a_line_is_the_event_with_its_checksum_as_the_last_member() -> None:
    line = event_line(WIRE)
    assert json.loads(line) == EVENT | {"crc": f"{crc32(WIRE):08x}"}
    assert line.startswith(WIRE[:-1] + b',"crc":"')
    assert line.endswith(b'"}\n')
    assert lines.event_lines([WIRE, b"{}"]) == line + event_line(b"{}")
    assert read_line(line[:-1]) == WIRE


def test_a_changed_line_is_not_read() -> None:
    line = event_line(WIRE)[:-1]
    for position in range(len(line)):
        for other in (line[position] ^ 1, line[position] ^ 0x20):
            assert read_line(line[:position] + bytes([other]) + line[position + 1 :]) is None
        assert read_line(line[:position]) is None
    assert read_line(line + b"\n") is None
    assert read_line(b"") is None


def test_a_head_has_the_fields_by_which_events_are_sorted() -> None:
    head = read_head(WIRE)
    assert head is not None
    assert (head.seq, head.type, head.worker_id, head.role) == (7, "error", "w", "shell")
    assert head.time == 1_767_225_601_234
    assert json.loads(bytes(head.data)) == EVENT["data"]
    bare = read_head(changed(workerId=None, role=None, seq=(1 << 63) - 1, timestamp="1970-01-01T00:00:00Z"))
    assert bare is not None
    assert (bare.seq, bare.time, bare.worker_id, bare.role) == ((1 << 63) - 1, 0, None, None)


@pytest.mark.parametrize(
    "wire",
    [
        changed(seq=0),
        changed(seq=-1),
        changed(seq=1 << 63),
        changed(seq="7"),
        changed(type=None),
        changed(timestamp="yesterday"),
        changed(timestamp="1969-12-31T23:59:59Z"),
        changed(workerId=7),
        json.dumps({name: value for name, value in EVENT.items() if name != "data"}).encode(),
        b"{",
        b"[]",
        b"[" * 100_000,
    ],
)
def test_an_invalid_event_has_no_head(wire: bytes) -> None:
    assert read_head(wire) is None


def test_an_event_with_too_many_values_is_not_read() -> None:
    def of_values(count: int) -> bytes:
        return changed(data=[])[:-2] + b",".join([b"0"] * count) + b"]}"

    separators = 7  # in an event with an empty list
    most = MAX_VALUES - separators + 1
    assert read_head(of_values(most)) is not None
    assert read_head(of_values(most + 1)) is None
    for mark in ("[", "{", ",", '\\"[', "\n["):
        assert read_head(changed(data=mark * (MAX_VALUES + 1))) is not None
    assert read_head(changed(data=[[]] * (MAX_VALUES // 2 + 1))) is None
    assert read_head(changed(data=[{}] * (MAX_VALUES // 2 + 1))) is None
