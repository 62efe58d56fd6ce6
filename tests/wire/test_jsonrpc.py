"""The bytes of an agent are split into messages with their offsets, whatever the agent sends."""

import json
import random
import tracemalloc
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bullpen.wire import jsonrpc
from bullpen.wire.jsonrpc import (
    MAX_INVALID_LINE_BYTES,
    ErrorResponse,
    InvalidLine,
    JsonRpcPeer,
    Line,
    LineTooLong,
    LongLineEnd,
    Notification,
    Request,
    Response,
    match_answer,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=4,
)
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0"),
        "id": st.integers() | st.text(max_size=5) | st.none() | JSON,
        "method": st.sampled_from(["session/update", "initialize", ""]) | JSON,
        "params": JSON,
        "result": JSON,
        "error": JSON,
    },
)
# Hypothesis generates slowly on a busy machine; that is not a failure.
without_deadline = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
LINE = MESSAGE.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=40)


def read_all(data: bytes, cuts: list[int], limit: int = jsonrpc.MAX_LINE_BYTES) -> list[Line]:
    peer = JsonRpcPeer(limit=limit)
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    found: list[Line] = []
    for start, end in pairwise(edges):
        found += peer.feed(data[start:end])
    return found + peer.finish()


def only(line: bytes) -> Line:
    (found,) = JsonRpcPeer().feed(line + b"\n")
    return found


@without_deadline
@given(lines=st.lists(LINE, max_size=5), cuts=st.lists(st.integers(0, 10_000), max_size=12))
def test_the_messages_do_not_depend_on_how_the_bytes_are_split(lines: list[bytes], cuts: list[int]) -> None:
    data = b"\n".join(lines)
    assert read_all(data, cuts) == read_all(data, [])
    assert read_all(data, cuts, limit=30) == read_all(data, [], limit=30)


@without_deadline
@given(lines=st.lists(LINE, max_size=5), offset=st.integers(0, 1 << 40))
def test_lines_are_contiguous_except_for_blank_ones(lines: list[bytes], offset: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    peer = JsonRpcPeer(offset)
    previous_end = offset
    for line in peer.feed(data):
        between = data[previous_end - offset : line.start - offset]
        assert not between.strip()
        assert data[line.end - offset - 1 : line.end - offset] == b"\n"
        previous_end = line.end
    assert not data[previous_end - offset :].strip()
    assert peer.offset == peer.resume_offset == offset + len(data)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            {"id": 7, "method": "m", "params": {"a": 1}},
            Request(id=7, method="m", params={"a": 1}, start=0, end=0),
        ),
        ({"id": "a-b", "method": "m"}, Request(id="a-b", method="m", start=0, end=0)),
        ({"method": "m", "params": [1]}, Notification(method="m", params=[1], start=0, end=0)),
        ({"method": "m", "id": None}, Notification(method="m", start=0, end=0)),
        ({"id": 3, "result": {"x": 1}}, Response(id=3, result={"x": 1}, start=0, end=0)),
        ({"id": 3, "result": None, "error": None}, Response(id=3, start=0, end=0)),
        ({"id": 3}, Response(id=3, start=0, end=0)),
        ({"result": {}}, Response(id=None, result={}, start=0, end=0)),
        (
            {"id": 3, "error": {"code": 400, "message": "bad", "data": {"d": 1}}},
            ErrorResponse(id=3, code=400, message="bad", data={"d": 1}, start=0, end=0),
        ),
        ({"id": 3, "error": "plain"}, ErrorResponse(id=3, code=-32603, message="plain", start=0, end=0)),
        (
            {"id": 3, "error": {"message": "m", "more": 1}},
            ErrorResponse(id=3, code=-32603, message="m", data={"message": "m", "more": 1}, start=0, end=0),
        ),
        (
            {"id": 3, "error": 5},
            ErrorResponse(id=3, code=-32603, message="an error without a message", data=5, start=0, end=0),
        ),
    ],
)
def test_the_kind_of_a_message_depends_on_its_members(line: dict[str, Any], expected: Line) -> None:
    data = json.dumps(line).encode()
    found = only(data)
    expected_fields = {name: getattr(expected, name) for name in expected.__struct_fields__}
    assert type(found) is type(expected)
    assert {name: getattr(found, name) for name in found.__struct_fields__} == expected_fields | {
        "start": 0,
        "end": len(data) + 1,
    }


@pytest.mark.parametrize("line", [b"npm warn deprecated", b"[1, 2]", b"3", b'{"method": 5}', b"{", b'"text"'])
def test_a_line_that_is_not_a_message_is_kept_as_invalid(line: bytes) -> None:
    found = only(line)
    assert isinstance(found, InvalidLine)
    assert found.text == line.decode()
    assert found.why


@pytest.mark.parametrize(
    ("line", "text", "why"),
    [
        (b"a\xff b \r\r", "a\ufffd b ", "not JSON: Expecting value"),
        (b"\r {", "\r {", "not JSON: Expecting property name"),
        (b"[1]", "[1]", "not a JSON-RPC message"),
        (b"MAX\r", "MAX", "not JSON: Expecting value"),
    ],
)
def test_an_invalid_line_has_its_text_and_the_reason(line: bytes, text: str, why: str) -> None:
    found = only(line)
    assert isinstance(found, InvalidLine)
    assert found.text == text
    assert why in found.why


def test_only_the_beginning_of_a_long_invalid_line_is_kept() -> None:
    line = b"".join(b"%06d " % number for number in range(15_000))
    found = only(line)
    assert isinstance(found, InvalidLine)
    assert found.text == line[:MAX_INVALID_LINE_BYTES].decode()


@pytest.mark.parametrize(
    ("text", "params"),
    [
        (b'{"method":"m","params":[NaN, Infinity]}', [None, None]),
        (b'{"method":"m","params":"\\ud800"}', "\ufffd"),
        (b'{"method":"m","params":"\xff"}', "\ufffd"),
        (b'{"method":"m","params":1e400}', None),
    ],
)
def test_unusual_json_is_still_a_message(text: bytes, params: Any) -> None:
    found = only(text)
    assert isinstance(found, Notification)
    assert found.params == params


def test_a_line_with_endless_nesting_is_invalid_and_the_next_line_is_read() -> None:
    deep = b'{"method":"m","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    noise, after = JsonRpcPeer().feed(deep + b'{"method":"n"}\n')
    assert isinstance(noise, InvalidLine)
    assert isinstance(after, Notification)


def test_ten_thousand_malformed_lines_never_raise() -> None:
    rng = random.Random(7)
    good = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"text": "äöü" * 5, "n": [1, 2]}})
    peer = JsonRpcPeer()
    count = 0
    for _ in range(10_000):
        line = bytearray(good.encode())
        for _ in range(rng.randrange(1, 6)):
            match rng.randrange(3):
                case 0:
                    line[rng.randrange(len(line))] = rng.randrange(256)
                case 1:
                    del line[rng.randrange(len(line)) :]
                    line += bytes([rng.randrange(256)])
                case _:
                    line[rng.randrange(len(line)) :] = bytes(rng.randrange(256) for _ in range(9))
        count += len(peer.feed(bytes(line).replace(b"\n", b"") + b"\n"))
    assert count >= 9_900  # the others are blank
    assert peer.feed(good.encode() + b"\n")[0].__class__ is Request


def test_a_line_that_is_too_long_is_skipped_and_its_begin_and_end_are_reported() -> None:
    before, long, after = b'{"method":"a"}\n', b"x" * 1000 + b"\n", b'{"method":"b"}\n'
    first, skipping, skipped, last = JsonRpcPeer(limit=100).feed(before + long + after)
    assert isinstance(first, Notification)
    assert skipping == LineTooLong(start=15, end=115)
    assert skipped == LongLineEnd(start=15, end=15 + 1001, size=1001)
    assert isinstance(last, Notification)


def test_a_line_of_the_maximum_length_is_read() -> None:
    line = json.dumps({"method": "x" * 80}).encode()
    assert isinstance(JsonRpcPeer(limit=len(line)).feed(line + b"\n")[0], Notification)
    assert isinstance(JsonRpcPeer(limit=len(line) - 1).feed(line + b"\n")[0], LineTooLong)


def test_a_skipped_line_needs_no_memory_and_is_passed_while_it_arrives() -> None:
    peer = JsonRpcPeer(limit=1 << 20)
    piece = b"y" * (1 << 18)
    tracemalloc.start()
    for _ in range(200):
        peer.feed(piece)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peer.resume_offset == 200 * len(piece)
    assert peak < 4 << 20


def test_an_incomplete_line_is_not_passed() -> None:
    peer = JsonRpcPeer(100)
    peer.feed(b'{"method":"a"}\n{"meth')
    assert (peer.resume_offset, peer.offset) == (115, 121)


def test_a_new_peer_continues_in_the_middle_of_a_skipped_line() -> None:
    skipped, after = JsonRpcPeer(5000, skipping=15).feed(b'still the long one\n{"method":"b"}\n')
    assert skipped == LongLineEnd(start=15, end=5019, size=5004)
    assert isinstance(after, Notification)


def test_the_last_line_needs_no_newline() -> None:
    peer = JsonRpcPeer()
    assert peer.feed(b'{"id":1,"result":{}}') == []
    (last,) = peer.finish()
    assert last == Response(id=1, result={}, start=0, end=20)
    assert peer.finish() == []


@pytest.mark.parametrize(
    ("id", "waiting", "expected"),
    [
        (4, {4, 5}, 4),
        ("4", {4, 5}, 4),
        (4.0, {4, 5}, 4),
        (None, {4}, 4),
        (None, {4, 5}, None),
        (None, set(), None),
        (6, {4, 5}, None),
        ("x", {4}, None),
        ("9" * 5000, {4}, None),
        ("४", {4}, None),
        (True, {1}, None),
        ([4], {4}, None),
        (4.5, {4}, None),
        ("1" * 19, {int("1" * 19)}, int("1" * 19)),
        ("1" * 20, {int("1" * 20)}, None),
    ],
)
def test_an_answer_finds_its_request_by_number_text_or_being_the_only_one(
    id: Any, waiting: set[int], expected: int | None
) -> None:
    assert match_answer(id, waiting) == expected


@without_deadline
@given(params=JSON, n=st.integers(1, 1 << 53), text=st.text(max_size=30))
def test_each_outgoing_message_is_one_line_that_a_peer_reads(params: Any, n: int, text: str) -> None:
    lines = [
        jsonrpc.request(n, "a/b", params),
        jsonrpc.notification("a/c", params),
        jsonrpc.response("their-id", params),
        jsonrpc.error_response(n, -32601, text, params),
    ]
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in lines)
    first, second, third, fourth = JsonRpcPeer().feed(b"".join(lines))
    assert isinstance(first, Request)
    assert (first.id, first.method) == (n, "a/b")
    assert isinstance(second, Notification)
    assert isinstance(third, Response)
    assert third.id == "their-id"
    assert isinstance(fourth, ErrorResponse)
    assert (fourth.id, fourth.code) == (n, -32601)


def test_outgoing_messages_have_the_members_of_the_protocol() -> None:
    def decoded(line: bytes) -> Any:
        return json.loads(line)

    version = {"jsonrpc": "2.0"}
    fault = {"code": -32601, "message": "no"}
    assert decoded(jsonrpc.request(7, "m", [1])) == version | {"id": 7, "method": "m", "params": [1]}
    assert decoded(jsonrpc.notification("m", [1])) == version | {"method": "m", "params": [1]}
    assert decoded(jsonrpc.response("x", [1])) == version | {"id": "x", "result": [1]}
    assert decoded(jsonrpc.error_response("x", -32601, "no")) == version | {"id": "x", "error": fault}
    assert decoded(jsonrpc.error_response("x", -32601, "no", [1]))["error"] == fault | {"data": [1]}
