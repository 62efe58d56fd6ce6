"""A truncated or corrupt recording can be opened: it lists the missing events, and the others are correct."""

import random
from pathlib import Path

import pytest

from bullpen.domain.conversation import AgentMessage
from bullpen.domain.errors import NotFound
from bullpen.domain.events import Event, SessionStart
from bullpen.log.event_file import append_events, last_seq
from bullpen.log.recording_directory import MissingEvents, RecordedEvents, RecordingDirectory
from bullpen.wire.browser import encode_event
from bullpen.wire.event_lines import event_lines

START = 1_772_000_000_000


def encoded_session(length: int) -> list[bytes]:
    """Return the encoded events of a session; all lines differ."""
    start = SessionStart(session_type="quick", location_path="/x", title="täst \u2028")
    events = [Event(1, START, start)]
    events += [
        Event(seq, START + seq * 7, AgentMessage(text=f"wörd {seq} " * (seq % 5), partial=True), "w", "r")
        for seq in range(2, length + 1)
    ]
    return list(map(encode_event, events))


def read(path: Path) -> tuple[dict[int, bytes], RecordedEvents]:
    events = RecordedEvents(path)
    try:
        return {seq: events.wire(position) for position, seq in enumerate(events.seqs)}, events
    finally:
        events.close()


def missing_seqs(gaps: list[MissingEvents]) -> set[int]:
    return {seq for first, last in gaps for seq in range(first, last + 1)}


def test_a_recording_that_is_cut_at_any_byte_is_read_and_can_be_continued(tmp_path: Path) -> None:
    wires = encoded_session(60)
    whole, path = event_lines(wires), tmp_path / "events.jsonl"
    assert len(whole) > 4096
    for end in range(len(whole) - 4096, len(whole)):
        path.write_bytes(whole[:end])
        kept, events = read(path)
        expected = whole[:end].count(b"\n")
        assert list(kept.values()) == wires[:expected]
        assert events.bad_lines == 0
        assert events.torn_bytes == end - (whole[:end].rfind(b"\n") + 1)
        assert missing_seqs(events.missing_ranges(60)) == set(range(expected + 1, 61))
        assert last_seq(path) == expected
        if end % 16 == 0:
            append_events(path, wires[expected:])
            assert path.read_bytes() == whole


def test_each_of_a_thousand_flipped_bits_is_detected(tmp_path: Path) -> None:
    wires = encoded_session(60)
    whole, path = event_lines(wires), tmp_path / "events.jsonl"
    rng = random.Random(11)
    for _ in range(1000):
        corrupt = bytearray(whole)
        corrupt[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(corrupt)
        kept, events = read(path)
        assert all(wires[seq - 1] == wire for seq, wire in kept.items())
        assert len(kept) >= 58  # a damaged newline damages two lines
        assert missing_seqs(events.missing_ranges(60)) == set(range(1, 61)) - set(kept) != set()
        assert events.bad_lines or events.torn_bytes


def test_a_thousand_flipped_bits_leave_the_other_lines_readable(tmp_path: Path) -> None:
    wires = encoded_session(3000)
    whole, path = event_lines(wires), tmp_path / "events.jsonl"
    corrupt, rng = bytearray(whole), random.Random(12)
    for _ in range(1000):
        corrupt[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
    path.write_bytes(corrupt)
    kept, events = read(path)
    untouched = set(bytes(corrupt).split(b"\n")) & set(whole.split(b"\n")) - {b""}
    assert all(wires[seq - 1] == wire for seq, wire in kept.items())
    assert len(kept) == len(untouched) > 1500
    assert missing_seqs(events.missing_ranges(3000)) == set(range(1, 3001)) - set(kept)


def test_a_corrupt_end_is_cut_off_and_written_again(tmp_path: Path) -> None:
    wires, path = encoded_session(10), tmp_path / "events.jsonl"
    whole = event_lines(wires)
    path.write_bytes(event_lines(wires[:8]) + b'{"seq":9,"crc":"00000000"}\n' + b"\0" * 70_000)
    assert last_seq(path) == 8
    append_events(path, wires[8:])
    assert path.read_bytes() == whole


def test_the_last_line_is_found_also_when_it_is_longer_than_a_read(tmp_path: Path) -> None:
    long = encode_event(Event(1, START, AgentMessage(text="x" * 500_000, partial=True)))
    append_events(tmp_path / "events.jsonl", [long])
    assert last_seq(tmp_path / "events.jsonl") == 1


def test_damage_is_described_in_sentences(tmp_path: Path) -> None:
    lines = event_lines(encoded_session(10)).splitlines(keepends=True)
    (tmp_path / "events.jsonl").write_bytes(b"".join([*lines[:3], b"nonsense\n", *lines[4:7], b'{"seq"']))
    (tmp_path / "metadata.json").write_text('{"lastSeq": 10}')
    recorded = RecordingDirectory(tmp_path)
    assert recorded.describe_damage() == [
        "damaged lines that were left out: 1",
        "the last line is torn: 6 bytes were left out",
        "event 4 is missing",
        "events 8 to 10 are missing",
    ]
    recorded.close()


def test_a_directory_without_a_recording_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no recording"):
        RecordingDirectory(tmp_path)
