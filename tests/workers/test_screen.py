"""A screen follows a recording from where it was saved, and answers each query once."""

import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullpen.workers.ghostty import CONTINUATION_MAX_BYTES, EmulatedTerminal
from bullpen.workers.screen import SAVE_BYTES, QueryReply, ScreenPosition
from support.inspectable_screen import InspectableScreen

COLS, ROWS = 20, 5


class MemoryRecording:
    """A recording in memory."""

    def __init__(self, data: bytes = b"", sizes: list[tuple[int, int, int]] | None = None) -> None:
        self.data = data
        self.resized = sizes or []
        self.start = 0

    @property
    def end(self) -> int:
        return len(self.data)

    def read(self, offset: int, limit: int) -> bytes:
        if offset < self.start:
            raise LookupError
        return self.data[offset : offset + limit]

    def window_sizes(self, after: int) -> Iterator[tuple[int, int, int]]:
        return (size for size in self.resized if size[0] >= after)


def open_screen(recording: MemoryRecording, directory: Path, answered: int = 0) -> InspectableScreen:
    return InspectableScreen(recording, directory, COLS, ROWS, answered=answered)


# Following the recording


def test_a_screen_shows_the_recording_up_to_its_position(tmp_path: Path) -> None:
    screen = open_screen(MemoryRecording(b"hello\r\nworld"), tmp_path)
    screen.advance(5)
    assert (screen.text(), screen.position) == ("hello", ScreenPosition(5))
    screen.advance(12)
    assert (screen.text(), screen.position) == ("hello\nworld", ScreenPosition(12))
    assert screen.cursor[:2] == (5, 1)


def test_a_screen_never_advances_beyond_the_end_or_backwards(tmp_path: Path) -> None:
    screen = open_screen(MemoryRecording(b"hello"), tmp_path)
    screen.advance(1000)
    screen.advance(2)
    assert (screen.text(), screen.position) == ("hello", ScreenPosition(5))


def test_a_window_size_applies_from_its_recorded_offset(tmp_path: Path) -> None:
    data = b"\x1b[18t" * 3
    recording = MemoryRecording(data, [(5, 30, 6), (10, 40, 7), (15, 50, 8)])
    screen = open_screen(recording, tmp_path)
    replies = screen.advance(15)
    assert [reply.data for reply in replies] == [b"\x1b[8;5;20t", b"\x1b[8;6;30t", b"\x1b[8;7;40t"]
    assert screen.history()[:3] == (15, 50, 8)


def test_a_resize_without_output_is_applied_once(tmp_path: Path) -> None:
    recording = MemoryRecording(b"\x1b[?2048h", [(8, 30, 6)])
    screen = open_screen(recording, tmp_path)
    assert [reply.n for reply in screen.advance(8)] == [1, 2]
    assert screen.save()
    recording.resized.append((8, 40, 7))
    again = open_screen(recording, tmp_path, answered=2)
    assert again.advance(8) == screen.advance(8) == [QueryReply(3, b"\x1b[48;7;40;112;320t")]
    assert again.position == screen.position == ScreenPosition(8, replies=3, resizes=2)


def test_absurd_sizes_are_bounded(tmp_path: Path) -> None:
    screen = open_screen(MemoryRecording(b"x", [(0, 65535, 65535), (1, 0, 0)]), tmp_path)
    screen.advance(0)
    assert screen.history()[1:3] == (1000, 500)
    screen.advance(1)
    assert screen.history()[1:3] == (1, 1)


# Replies to queries


def test_every_query_has_one_numbered_reply(tmp_path: Path) -> None:
    screen = open_screen(MemoryRecording(b"ab\x1b[6ncd\x1b[6n\x1b[5n"), tmp_path)
    assert screen.advance(6) == [QueryReply(1, b"\x1b[1;3R")]
    assert screen.advance(6) == []
    assert screen.advance(16) == [QueryReply(2, b"\x1b[1;5R"), QueryReply(3, b"\x1b[0n")]


def test_old_queries_get_numbered_empty_replies(tmp_path: Path) -> None:
    screen = open_screen(MemoryRecording(b"\x1b[5n\x1b[5n\x1b[5n"), tmp_path)
    assert screen.advance(12, answer_from=8) == [
        QueryReply(1, b""),
        QueryReply(2, b""),
        QueryReply(3, b"\x1b[0n"),
    ]


def test_a_viewer_that_attaches_before_the_reply_does_not_prevent_it(tmp_path: Path) -> None:
    screen = open_screen(MemoryRecording(b"ab\x1b[6ncd\x1b[6n"), tmp_path)
    assert screen.advance(2) == []
    assert screen.history(12).offset == 12
    assert screen.advance(6) == [QueryReply(1, b"\x1b[1;3R"), QueryReply(2, b"\x1b[1;5R")]
    assert screen.advance(12) == []


def test_replies_that_a_killed_server_saved_but_did_not_type_leave_no_gap(tmp_path: Path) -> None:
    recording = MemoryRecording(b"\x1b[5n\x1b[5n\x1b[5n")
    killed = open_screen(recording, tmp_path)
    killed.advance(8)
    killed.save()
    screen = open_screen(recording, tmp_path, answered=1)
    assert screen.advance(12) == [QueryReply(2, b""), QueryReply(3, b"\x1b[0n")]


def test_replies_that_were_typed_are_not_typed_again(tmp_path: Path) -> None:
    screen = open_screen(MemoryRecording(b"\x1b[5n\x1b[5n\x1b[5n"), tmp_path, answered=2)
    assert screen.advance(12) == [QueryReply(3, b"\x1b[0n")]


def test_the_replies_to_a_flood_of_queries_are_limited(tmp_path: Path) -> None:
    screen = open_screen(MemoryRecording(b"\x1b[5n" * 50_000), tmp_path)
    replies = screen.advance(200_000)
    assert [reply.n for reply in replies] == list(range(1, 50_001))
    assert 60_000 < sum(len(reply.data) for reply in replies) <= 65_536


def test_queries_in_the_history_are_not_answered_by_viewers_and_a_live_one_is_answered_once(
    tmp_path: Path,
) -> None:
    recording = MemoryRecording(b"prompt\x1b[6n\x1b[c\x1b]11;?\x07\x1b[?2004$p$ ")
    screen = open_screen(recording, tmp_path)
    assert len(screen.advance(recording.end)) == 4
    history = screen.history()
    viewers = [EmulatedTerminal(COLS, ROWS) for _ in range(3)]
    assert [viewer.feed(history.data) for viewer in viewers] == [[], [], []]
    recording.data += b"\x1b[6n"
    assert screen.advance(recording.end) == [QueryReply(5, b"\x1b[1;9R")]


# Saved screens


def test_a_saved_screen_is_readable_by_the_owner_only_and_old_ones_are_deleted(tmp_path: Path) -> None:
    screen = open_screen(MemoryRecording(b"abcd"), tmp_path / "deep" / "down")
    for to in range(1, 5):
        screen.advance(to)
        assert screen.save()
    files = sorted((tmp_path / "deep" / "down").iterdir())
    assert [file.name for file in files] == ["3.screen", "4.screen"]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_a_screen_is_saved_automatically_after_much_output(tmp_path: Path) -> None:
    screen = open_screen(MemoryRecording(b"\x1b[0mx" * SAVE_BYTES), tmp_path)
    screen.advance(SAVE_BYTES - 1)
    assert list(tmp_path.iterdir()) == []
    screen.advance(SAVE_BYTES + 5)
    screen.advance(SAVE_BYTES + 10)
    assert [file.name for file in tmp_path.iterdir()] == [f"{SAVE_BYTES + 5}.screen"]


def test_a_screen_that_cannot_be_saved_still_works(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    screen = open_screen(MemoryRecording(b"hello"), tmp_path / "file" / "below")
    screen.advance(5)
    assert not screen.save()
    assert screen.text() == "hello"


def test_a_screen_inside_an_endless_sequence_is_not_saved_and_recovers_after_it(tmp_path: Path) -> None:
    endless = b"shown\x1b[?1049hfull\x1b]2;" + b"x" * (CONTINUATION_MAX_BYTES + 10)
    screen = open_screen(MemoryRecording(endless + b"\x07 end"), tmp_path)
    screen.advance(len(endless))
    assert not screen.save()
    viewer = EmulatedTerminal(COLS, ROWS)
    assert viewer.feed(screen.history().data + b"\x07 end") == []
    screen.advance(len(endless) + 5)
    assert viewer.text() == screen.text() == "     full end"
    assert screen.save()


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "foreign", "beyond"])
def test_a_damaged_saved_screen_is_ignored(tmp_path: Path, damage: str) -> None:
    recording = MemoryRecording(b"first\r\nsecond\x1b[6n")
    screen = open_screen(recording, tmp_path)
    screen.advance(5)
    screen.save()
    screen.advance(recording.end)
    screen.save()
    newest = tmp_path / f"{recording.end}.screen"
    whole = newest.read_bytes()
    match damage:
        case "cut":
            newest.write_bytes(whole[:-7])
        case "flip":
            newest.write_bytes(whole[:-7] + bytes([whole[-7] ^ 1]) + whole[-6:])
        case "empty":
            newest.write_bytes(b"")
        case "foreign":
            newest.write_bytes(b"something else entirely")
        case "beyond":
            newest.rename(tmp_path / "999999.screen")
            recording.data = recording.data[:10]
    again = open_screen(recording, tmp_path)
    assert again.position == ScreenPosition(5)
    again.advance(recording.end)
    assert again.text() == ("first\nsec" if damage == "beyond" else "first\nsecond")


def test_an_unloaded_screen_takes_no_memory_and_is_restored(tmp_path: Path) -> None:
    recording = MemoryRecording(b"hello\x1b[3")
    screen = open_screen(recording, tmp_path)
    assert not screen.loaded
    screen.advance(recording.end)
    assert screen.loaded
    before = screen.history()
    screen.unload()
    assert not screen.loaded
    assert screen.position == ScreenPosition(8)
    assert screen.history() == before


# A recording with missing bytes


def test_after_missing_bytes_a_screen_continues_with_the_next_ones(tmp_path: Path) -> None:
    recording = MemoryRecording(
        b"\x1b[?2004h\x1b[6nold\x1b[3" + b"1;4m lost " + b"\x1b[5ncut here\r\nnew\x1b[6n"
    )
    screen = open_screen(recording, tmp_path, answered=7)
    screen.advance(18)
    recording.start = recording.data.index(b"here")
    replies = screen.advance(recording.end)
    assert screen.text() == "old\nnew"
    assert screen.mode(2004)
    assert replies == [QueryReply(8, b"\x1b[2;4R")]


def test_a_recording_without_its_beginning_is_shown_from_its_oldest_byte(tmp_path: Path) -> None:
    recording = MemoryRecording(b"x" * 100 + b"1mcut\x1b[0mnew\x1b[6n", [(20, 30, 6), (50, 40, 7)])
    recording.start = 100
    screen = open_screen(recording, tmp_path, answered=3)
    assert screen.position == ScreenPosition(100, replies=3)
    assert screen.advance(recording.end) == [QueryReply(4, b"\x1b[1;4R")]
    assert (screen.text(), screen.history()[1:3]) == ("new", (40, 7))


def test_bytes_that_are_deleted_during_a_read_count_as_missing(tmp_path: Path) -> None:
    class ShrinkingRecording(MemoryRecording):
        def read(self, offset: int, limit: int) -> bytes:
            self.start = self.end - 8
            return super().read(offset, limit)

    screen = open_screen(ShrinkingRecording(b"lost\r\n" * 100 + b"\r\nremains"), tmp_path)
    screen.advance(700)
    assert screen.text().strip() == "remains"


def test_a_screen_of_a_purged_recording_is_empty(tmp_path: Path) -> None:
    """A user purged the session during the read. The oldest offset of an empty recording is 0."""

    class PurgedRecording(MemoryRecording):
        def read(self, offset: int, limit: int) -> bytes:
            raise LookupError

    screen = open_screen(PurgedRecording(b"gone" * 100), tmp_path)
    screen.advance(400)
    assert screen.text() == ""


# Threads


def test_use_of_one_screen_by_two_threads_is_detected(tmp_path: Path) -> None:
    entered, may_leave = threading.Event(), threading.Event()

    @contextmanager
    def slow_guard() -> Iterator[None]:
        entered.set()
        assert may_leave.wait(10)
        yield

    screen = InspectableScreen(MemoryRecording(b"hello"), tmp_path, COLS, ROWS, guard=slow_guard)
    thread = threading.Thread(target=screen.advance, args=(5,))
    thread.start()
    assert entered.wait(10)
    with pytest.raises(AssertionError, match="two threads"):
        screen.text()
    may_leave.set()
    thread.join(10)
    assert screen.text() == "hello"


def test_many_screens_in_many_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    pieces = [
        b"\x1b[31mred\x1b[0m\r\n",
        b"\x1b[6n",
        b"\x1b[?1049h\x1b[2J",
        b"\x1b[?1049l",
        "日本\r\n".encode(),
    ]
    results: dict[int, tuple[bytes, list[QueryReply]]] = {}

    def follow(name: int) -> None:
        recording = MemoryRecording(b"".join(random.Random(name % 2).choices(pieces, k=3000)))
        screen = open_screen(recording, tmp_path / str(name))
        replies = [reply for to in range(0, recording.end, 997) for reply in screen.advance(to)]
        results[name] = (screen.history().data, replies)

    threads = [threading.Thread(target=follow, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results[0] == results[2] == results[4]
    assert results[1] == results[3] == results[5]


# Hostile programs

HOSTILE = {
    "huge counts": b"".join(b"text\x1b[2147483647%c" % final for final in b"bSTLMIZ@PXABCDEFGHJK"),
    "more digits than a number has": b"\x1b[" + b"9" * 100_000 + b"H" + b"\x1b[" + b"1;" * 100_000 + b"m",
    "unterminated DCS": b"\x1bP" + b"q" * (1 << 20),
    "unterminated OSC": b"\x1b]52;c;" + b"A" * (1 << 20),
    "unterminated APC": b"\x1b_G" + b"A" * (1 << 20),
    "combining marks": b"e" + "\u0301".encode() * 200_000,
    "joiners": "👩\u200d".encode() * 50_000,
    "a title": b"\x1b]2;" + b"T" * (1 << 20) + b"\x07",
    "titles": b"\x1b]2;title\x07" * 50_000,
    "links": b"".join(b"\x1b]8;;javascript:alert(%d)\x07x" % i for i in range(20_000)),
    "lone bytes": bytes(range(256)) * 4000,
    "noise": random.Random(1).randbytes(1 << 20),
    "resets": b"\x1bc\x1b[!p\x1b[?3h\x1b[?40h\x1b[?3h\x1b[?3l" * 5000,
    "saves": b"\x1b7\x1b[?1049h\x1b8\x1b[?47l\x1b[>1u" * 5000,
    "colours": b"".join(b"\x1b[38;2;%d;%d;%dmx" % (i % 256, i // 256 % 256, i % 7) for i in range(100_000)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_output_is_emulated_quickly_and_does_no_damage(tmp_path: Path, name: str) -> None:
    recording = MemoryRecording(HOSTILE[name] + b"\x18\x1b\\\x1bc\x1b[?1049l\x1b[2J\x1b[Hstill here")
    screen = open_screen(recording, tmp_path)
    start = time.process_time()
    for to in range(0, recording.end, 65_536):
        screen.advance(to)
    middle = screen.history()
    screen.advance(recording.end)
    saved = screen.save()
    assert time.process_time() - start < 10  # an emulator without limits needs minutes
    assert saved
    assert EmulatedTerminal(COLS, ROWS).feed(middle.data) == []
    assert screen.text() == open_screen(recording, tmp_path).text() == "still here"


# A screen restored from a file equals a screen computed from the beginning

TOKENS = [
    *(b"hello ", b"x" * 30, b"\r\n", b"\n", b"\t", "日本語".encode(), "e\u0301".encode(), "👨‍👩‍👧".encode()),
    *(
        b"\x1b[31m",
        b"\x1b[0m",
        b"\x1b[44m\x1b[K",
        b"\x1b[2J",
        b"\x1b[H",
        b"\x1b[3;5H",
        b"\x1b[2L",
        b"\x1b[3P",
    ),
    *(b"\x1b7", b"\x1b8", b"\x1b[2;4r", b"\x1b[r", b"\x1b[?6h", b"\x1b[?69h", b"\x1b[2;8s", b"\x1b[?7l"),
    *(b"\x1b[4h", b"\x1b[4l", b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?47h", b"\x1b[?47l", b"\x1b[?2004h"),
    *(b"\x1b(0", b"\x0e", b"\x0f", b"\x1bH", b"\x1b[>1u", b"\x1b[<u", b"\x1b[5 q", b"\x1b]2;title\x07"),
    *(b"\x1b]8;;http://a/b\x1b\\", b"\x1b]8;;\x07", b"\x1b]4;1;#102030\x07", b"\x1b[?2027h", b"\x1b[3b"),
    *(b"\x1b[?2004s", b"\x1b[?2004r", b"\x1b]133;A\x07", b"\x1b[!p", b"\x1bc", b"\x1b#8", b"\x1b[?2048h"),
    *(b"\x1b[6n", b"\x1b[c", b"\x1b]11;?\x07", b"\x1bP$qm\x1b\\", b"\x1b[?2004$p", b"\x1b[18t", b"\x1b[?u"),
]


@settings(max_examples=150, deadline=None)
@given(
    tokens=st.lists(st.sampled_from(TOKENS), max_size=40),
    cuts=st.lists(st.floats(0, 1), max_size=4),
    resizes=st.lists(st.tuples(st.floats(0, 1), st.integers(1, 40), st.integers(1, 10)), max_size=3),
)
def test_a_restored_screen_equals_one_fed_from_the_beginning(
    tokens: list[bytes], cuts: list[float], resizes: list[tuple[float, int, int]]
) -> None:
    data = b"".join(tokens)
    recording = MemoryRecording(
        data, sorted((round(at * len(data)), cols, rows) for at, cols, rows in resizes)
    )
    with tempfile.TemporaryDirectory() as directory:
        whole = open_screen(recording, Path(directory) / "whole")
        replies = whole.advance(recording.end)
        pieces: list[QueryReply] = []
        for at in sorted(round(cut * len(data)) for cut in cuts):
            restored = open_screen(recording, Path(directory) / "pieces", answered=len(pieces))
            pieces += restored.advance(at)
            assert restored.save()
        restored = open_screen(recording, Path(directory) / "pieces", answered=len(pieces))
        pieces += restored.advance(recording.end)
        assert pieces == replies
        assert restored.position == whole.position
        assert restored.history() == whole.history()
        assert restored.contents() == whole.contents()


def test_the_numbers_of_replies_have_no_gaps(tmp_path: Path) -> None:
    recording = MemoryRecording(b"".join(random.Random(3).choices(TOKENS, k=2000)))
    screen = open_screen(recording, tmp_path)
    replies = [reply for to in range(0, recording.end + 100, 100) for reply in screen.advance(to)]
    assert replies[0].n == 1
    assert all(b.n == a.n + 1 for a, b in pairwise(replies))
    assert screen.position.replies == len(replies)


def test_a_flood_of_text_gives_the_same_screen_in_one_step_or_in_many(
    tmp_path: Path,
) -> None:
    lines = b"".join(b"%d bottles of beer on the wall\r\n" % i for i in range(200_000))
    recording = MemoryRecording(b"\x1b[?2004h\x1b[32m" + lines + b"\x1b[0m$ \x1b[6n")
    at_once, in_steps = open_screen(recording, tmp_path / "1"), open_screen(recording, tmp_path / "2")
    replies = at_once.advance(recording.end)
    assert [
        reply for to in range(0, recording.end + 99_999, 99_999) for reply in in_steps.advance(to)
    ] == replies
    assert at_once.text() == in_steps.text()
    assert at_once.cursor == in_steps.cursor
    shorter, longer = sorted((at_once.contents(), in_steps.contents()), key=len)
    assert longer.endswith(shorter[-100_000:])
    assert at_once.mode(2004)


def test_the_directory_is_created_by_the_first_save(tmp_path: Path) -> None:
    screen = open_screen(MemoryRecording(b"hello"), tmp_path / "new")
    screen.advance(5)
    assert not os.path.exists(tmp_path / "new")
