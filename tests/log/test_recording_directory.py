"""R-11: a recording that was cut or has rotted opens, says what is missing, and the rest is right."""

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


def story(length: int) -> list[bytes]:
    """A session on the wire; every line is another."""
    start = SessionStart(session_type="quick", location_path="/x", title="täst \u2028")
    said = [Event(1, START, start)]
    said += [
        Event(seq, START + seq * 7, AgentMessage(text=f"wörd {seq} " * (seq % 5), partial=True), "w", "r")
        for seq in range(2, length + 1)
    ]
    return list(map(encode_event, said))


def read(path: Path) -> tuple[dict[int, bytes], RecordedEvents]:
    events = RecordedEvents(path)
    try:
        return {seq: events.wire(place) for place, seq in enumerate(events.seqs)}, events
    finally:
        events.close()


def lost(gaps: list[MissingEvents]) -> set[int]:
    return {seq for first, last in gaps for seq in range(first, last + 1)}


def test_cut_at_every_byte_of_the_last_4_kb_the_rest_is_right_and_can_be_gone_on_with(tmp_path: Path) -> None:
    story_ = story(60)
    whole, path = event_lines(story_), tmp_path / "events.jsonl"
    assert len(whole) > 4096
    for end in range(len(whole) - 4096, len(whole)):
        path.write_bytes(whole[:end])
        kept, events = read(path)
        expected = whole[:end].count(b"\n")
        assert list(kept.values()) == story_[:expected]
        assert events.bad_lines == 0
        assert events.torn_bytes == end - (whole[:end].rfind(b"\n") + 1)
        assert lost(events.missing_ranges(60)) == set(range(expected + 1, 61))
        assert last_seq(path) == expected
        if end % 16 == 0:
            append_events(path, story_[expected:])
            assert path.read_bytes() == whole


def test_each_of_a_thousand_flipped_bits_is_found_and_named(tmp_path: Path) -> None:
    story_ = story(60)
    whole, path = event_lines(story_), tmp_path / "events.jsonl"
    dice = random.Random(11)
    for _ in range(1000):
        rotten = bytearray(whole)
        rotten[dice.randrange(len(whole))] ^= 1 << dice.randrange(8)
        path.write_bytes(rotten)
        kept, events = read(path)
        assert all(story_[seq - 1] == wire for seq, wire in kept.items())
        assert len(kept) >= 58  # a newline that is gone takes two lines with it
        assert lost(events.missing_ranges(60)) == set(range(1, 61)) - set(kept) != set()
        assert events.bad_lines or events.torn_bytes


def test_a_thousand_flipped_bits_at_once_leave_the_untouched_lines(tmp_path: Path) -> None:
    story_ = story(3000)
    whole, path = event_lines(story_), tmp_path / "events.jsonl"
    rotten, dice = bytearray(whole), random.Random(12)
    for _ in range(1000):
        rotten[dice.randrange(len(whole))] ^= 1 << dice.randrange(8)
    path.write_bytes(rotten)
    kept, events = read(path)
    untouched = set(bytes(rotten).split(b"\n")) & set(whole.split(b"\n")) - {b""}
    assert all(story_[seq - 1] == wire for seq, wire in kept.items())
    assert len(kept) == len(untouched) > 1500
    assert lost(events.missing_ranges(3000)) == set(range(1, 3001)) - set(kept)


def test_a_rotten_end_is_cut_off_and_written_again(tmp_path: Path) -> None:
    story_, path = story(10), tmp_path / "events.jsonl"
    whole = event_lines(story_)
    path.write_bytes(event_lines(story_[:8]) + b'{"seq":9,"crc":"00000000"}\n' + b"\0" * 70_000)
    assert last_seq(path) == 8
    append_events(path, story_[8:])
    assert path.read_bytes() == whole


def test_a_line_longer_than_what_is_read_at_once_is_found_from_the_end(tmp_path: Path) -> None:
    long = encode_event(Event(1, START, AgentMessage(text="x" * 500_000, partial=True)))
    append_events(tmp_path / "events.jsonl", [long])
    assert last_seq(tmp_path / "events.jsonl") == 1


def test_damage_is_told_in_sentences(tmp_path: Path) -> None:
    lines = event_lines(story(10)).splitlines(keepends=True)
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


def test_a_directory_without_a_recording_is_said_to_have_none(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no recording"):
        RecordingDirectory(tmp_path)
