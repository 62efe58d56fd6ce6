"""The player: next, peek, seek, reset and position, events by type, original timing and other speeds."""

import os
import random
from pathlib import Path

import pytest

from bullpen.domain.errors import NotFound
from bullpen.domain.events import Event, SessionStart, WorkerExited, WorkerReady, WorkerSpawning
from bullpen.domain.snapshot import Snapshot, fold_all
from bullpen.keeper.spool import INDEX_ENTRY
from bullpen.log.event_file import append_events
from bullpen.log.replay import PlaybackPace, ReplayPlayer
from bullpen.log.tracks import PIECE_BYTES, ChatMoment, OutputMoment
from bullpen.wire.browser import encode_event

MS = 1_000_000
START = 1_772_000_000_000


def at(ms: int) -> int:
    return (START + ms) * MS


EVENTS = [
    Event(1, START, SessionStart(session_type="quick", location_path="/x", title="t")),
    Event(2, START + 10, WorkerSpawning(worker_type="terminal", name="T", run=1, workspace="/x"), "w", "t"),
    Event(3, START + 20, WorkerReady(pid=7), "w", "t"),
    Event(4, START + 5000, WorkerExited(exit_code=0), "w", "t"),
]
OUTPUT = [
    (30, b"$ ", (80, 24)),
    (1000, b"ls\r\n", (0, 0)),
    (1010, b"a b\r\n", (100, 30)),
    (4990, b"exit", (0, 0)),
]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a recording as it is exported: events, and the output of a terminal."""
    append_events(tmp_path / "events.jsonl", list(map(encode_event, EVENTS)))
    write_spool(tmp_path / "terminals" / "w" / "1", OUTPUT)
    return tmp_path


def write_spool(directory: Path, output: list[tuple[int, bytes, tuple[int, int]]]) -> None:
    os.makedirs(directory)
    data, index = b"", b""
    for ms, piece, size in output:
        index += INDEX_ENTRY.pack(len(data), at(ms), *size)
        data += piece
    (directory / f"{0:020d}.bin").write_bytes(data)
    (directory / f"{0:020d}.idx").write_bytes(index)


def names(player: ReplayPlayer) -> list[str]:
    return [
        moment.data.decode() if isinstance(moment, OutputMoment) else moment.event.type
        for moment in iter(player)
    ]


def test_events_and_terminal_output_are_ordered_by_one_clock(directory: Path) -> None:
    player = ReplayPlayer.open(directory)
    assert len(player) == 8
    assert (player.start_time, player.end_time) == (at(0), at(5000))
    assert names(player) == [
        *["session_start", "worker_spawning", "worker_ready"],
        *["$ ", "ls\r\n", "a b\r\n", "exit", "worker_exited"],
    ]
    assert (player.position, player.seq, player.next(), player.peek()) == (8, 4, None, None)
    player.close()


def test_peek_keeps_the_position_next_advances_it_and_reset_clears_it(directory: Path) -> None:
    player = ReplayPlayer.open(directory)
    first = player.peek()
    assert first == player.peek() == player.next() == ChatMoment(at(0), EVENTS[0])
    assert (player.position, player.seq) == (1, 1)
    player.reset()
    assert (player.position, player.seq, player.next()) == (0, 0, first)
    player.close()


def test_a_player_can_seek_to_any_seq_and_any_time(directory: Path) -> None:
    player = ReplayPlayer.open(directory)
    player.seek_seq(4)
    assert (player.seq, player.offsets()) == (3, {("w", 1): 15})
    assert names(player) == ["worker_exited"]
    player.seek_time(at(1001))
    assert (player.seq, player.offsets()) == (3, {("w", 1): 6})
    assert player.next() == OutputMoment(at(1010), "w", 1, 6, b"a b\r\n", (100, 30))
    player.seek_time(at(20))
    assert player.next() == ChatMoment(at(20), EVENTS[2])
    player.seek_time(at(99_999))
    assert player.next() is None
    with pytest.raises(NotFound, match="ends before event 5"):
        player.seek_seq(5)
    player.close()


def test_after_a_seek_the_same_moments_follow_as_after_playing(directory: Path) -> None:
    player = ReplayPlayer.open(directory)
    moments = list(player)
    for time in {moment.time for moment in moments}:
        player.seek_time(time)
        assert list(player) == [moment for moment in moments if moment.time >= time]
    player.close()


def test_events_of_a_type_are_found_from_any_position(directory: Path) -> None:
    player = ReplayPlayer.open(directory)
    player.seek_seq(3)
    assert [event.seq for event in player.events_of_type("worker_spawning")] == [2]
    assert list(player.events_of_type("nothing")) == []
    assert player.seq == 2
    player.close()


def test_the_playback_pace_is_original_or_faster_and_limits_idle_time() -> None:
    assert PlaybackPace().seconds(at(0), at(1500)) == 1.5
    assert PlaybackPace(speed=3).seconds(at(0), at(1500)) == 0.5
    assert PlaybackPace(idle=0.5).seconds(at(0), at(1500)) == 0.5
    assert PlaybackPace(speed=2, idle=0.5).seconds(at(0), at(100)) == 0.05
    assert PlaybackPace().seconds(at(10), at(0)) == 0


async def test_playing_yields_every_moment_in_order(directory: Path) -> None:
    player = ReplayPlayer.open(directory)
    played = [moment async for moment in player.play(PlaybackPace(speed=1000))]
    player.reset()
    assert played == list(player)
    player.close()


def test_the_played_events_fold_to_the_session(directory: Path) -> None:
    player = ReplayPlayer.open(directory)
    assert fold_all(Snapshot(id="s"), player.events()) == fold_all(Snapshot(id="s"), EVENTS)
    player.close()


def test_a_flood_is_split_into_pieces_without_loss(directory: Path) -> None:
    flood = random.Random(1).randbytes(3 * PIECE_BYTES + 5)
    write_spool(directory / "terminals" / "w" / "2", [(100, flood, (80, 24))])
    player = ReplayPlayer.open(directory)
    pieces = [moment for moment in player if isinstance(moment, OutputMoment) and moment.run == 2]
    assert b"".join(piece.data for piece in pieces) == flood
    assert max(len(piece.data) for piece in pieces) == PIECE_BYTES
    assert [piece.size for piece in pieces] == [(80, 24), None, None, None]
    player.close()


def test_a_terminal_with_a_corrupt_index_plays_every_byte(directory: Path) -> None:
    output = [(100 * number, b"%03d\r\n" % number, (80, 24)) for number in range(1, 40)]
    spool = directory / "terminals" / "w" / "2"
    write_spool(spool, output)
    index, rng = (spool / f"{0:020d}.idx").read_bytes(), random.Random(2)
    for _ in range(300):
        corrupt = bytearray(index)
        corrupt[rng.randrange(len(index))] ^= 1 << rng.randrange(8)
        (spool / f"{0:020d}.idx").write_bytes(corrupt)
        player = ReplayPlayer.open(directory)
        moments = [moment for moment in player if isinstance(moment, OutputMoment) and moment.run == 2]
        assert b"".join(moment.data for moment in moments) == b"".join(piece for _, piece, _ in output)
        times = [moment.time for moment in moments]
        assert times == sorted(times)
        assert len(set(times) & {at(ms) for ms, _, _ in output}) >= len(output) - 2
        player.close()


def test_the_output_before_a_time_is_that_of_the_run_at_that_time(directory: Path) -> None:
    write_spool(directory / "terminals" / "w" / "2", [(4000, b"second", (80, 24))])
    player = ReplayPlayer.open(directory)
    for ms, output in ((0, b""), (31, b"$ "), (1005, b"$ ls\r\n"), (4001, b"second"), (9000, b"second")):
        player.seek_time(at(ms))
        assert b"".join(player.output_before("w")) == output
    assert list(player.output_before("other")) == []
    player.close()
