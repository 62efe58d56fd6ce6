"""Input keeps its numbers until the server acknowledges it."""

import base64

from bullpen.client.unacknowledged_input import MAX_BATCH_BYTES, UnacknowledgedInput


def unacknowledged(outgoing: UnacknowledgedInput, after: int = 0) -> list[tuple[int, bytes]]:
    return [(batch.n, batch.data) for batch in outgoing.after(after)]


def test_batches_are_numbered_from_one_without_gaps() -> None:
    outgoing = UnacknowledgedInput()
    for data in (b"a", b"b", b"c"):
        outgoing.add(data)
    assert unacknowledged(outgoing) == [(1, b"a"), (2, b"b"), (3, b"c")]


def test_acknowledged_input_is_not_sent_again_and_other_input_keeps_its_numbers() -> None:
    outgoing = UnacknowledgedInput()
    for data in (b"a", b"b", b"c"):
        outgoing.add(data)
    outgoing.acknowledge(2)
    outgoing.add(b"d")
    assert unacknowledged(outgoing) == [(3, b"c"), (4, b"d")]
    outgoing.acknowledge(4)
    assert not outgoing
    assert outgoing.size == 0


def test_an_old_acknowledgement_changes_nothing() -> None:
    outgoing = UnacknowledgedInput()
    outgoing.add(b"a")
    outgoing.acknowledge(1)
    outgoing.add(b"b")
    outgoing.acknowledge(1)
    assert unacknowledged(outgoing) == [(2, b"b")]


def test_large_input_is_cut_into_batches() -> None:
    outgoing = UnacknowledgedInput()
    data = bytes(range(256)) * 400
    assert outgoing.add(data) == -(-len(data) // MAX_BATCH_BYTES)
    assert b"".join(piece for _, piece in unacknowledged(outgoing)) == data


def test_a_batch_acknowledged_while_others_are_sent_leaves_no_gap() -> None:
    outgoing = UnacknowledgedInput()
    for data in (b"a", b"b", b"c"):
        outgoing.add(data)
    sending = outgoing.after(0)
    assert next(sending).n == 1
    outgoing.acknowledge(1)
    outgoing.add(b"d")
    assert [batch.n for batch in sending] == [2, 3, 4]


def test_text_is_sent_as_text_and_other_bytes_as_base64() -> None:
    outgoing = UnacknowledgedInput()
    outgoing.add("ä".encode())
    outgoing.add(b"\xff\x00")
    text, other = (batch.message() for batch in outgoing.after(0))
    assert text == {"type": "input", "n": 1, "data": "ä"}
    assert base64.b64decode(other["base64"]) == b"\xff\x00"
