"""`bullpen replay` in a tmux window: keys pause, move in time and change the speed."""

import os
from pathlib import Path

import pytest

from bullpen.domain.conversation import UserPrompt
from bullpen.domain.events import Error, Event, SessionStart, WorkerReady, WorkerSpawning
from bullpen.keeper.spool import INDEX_ENTRY
from bullpen.log.event_file import append_events
from bullpen.wire.browser import encode_event
from support.server import Server
from support.tmux import PROMPT, Tmux

START = 1_772_000_000_000
EVENTS = [
    Event(1, START, SessionStart(session_type="quick", location_path="/x", title="t")),
    Event(2, START + 10, WorkerSpawning(worker_type="terminal", name="T", run=1, workspace="/x"), "w", "t"),
    Event(3, START + 20, WorkerReady(pid=7), "w", "t"),
    Event(4, START + 1_020_000, UserPrompt(prompt_id="p1", text="the first question"), "w", "t"),
    Event(5, START + 1_060_000, UserPrompt(prompt_id="p2", text="the second question"), "w", "t"),
    Event(6, START + 1_090_000, Error(message="the last event"), "w", "t"),
]
OUTPUT = [(30, b"terminal one\r\n"), (1_040_000, b"terminal two\r\n")]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Write a recording of 18 minutes, so that at normal speed only its beginning is shown during a test."""
    directory = tmp_path / "recording"
    spool = directory / "terminals" / "w" / "1"
    os.makedirs(spool)
    append_events(directory / "events.jsonl", list(map(encode_event, EVENTS)))
    (directory / "metadata.json").write_text('{"lastSeq": 6}')
    data, index = b"", b""
    for ms, piece in OUTPUT:
        index += INDEX_ENTRY.pack(len(data), (START + ms) * 1_000_000, 80, 24)
        data += piece
    (spool / f"{0:020d}.bin").write_bytes(data)
    (spool / f"{0:020d}.idx").write_bytes(index)
    return directory


async def press(tmux: Tmux, key: str, last_line: str) -> str:
    """Press a key, and wait until this is the last line of the screen."""
    await tmux.type(key)
    return await tmux.until(lambda screen: screen.strip().splitlines()[-1] == last_line)


async def test_space_pauses_and_arrows_move_in_time(tmux: Tmux, recording: Path) -> None:
    await tmux.enter(f"bullpen replay {recording} --idle 0")
    screen = await tmux.until("terminal one")
    assert "session start" in screen
    await press(tmux, "Space", "-- 0:00 of 18:10, x1, paused --")
    await press(tmux, "Right", "-- 0:05 of 18:10, x1, paused --")
    await press(tmux, "Right", "-- 0:10 of 18:10, x1, paused --")
    await press(tmux, "Left", "-- 0:05 of 18:10, x1, paused --")
    await press(tmux, "Left", "-- 0:00 of 18:10, x1, paused --")
    assert "question" not in await press(tmux, "Left", "-- 0:00 of 18:10, x1, paused --")
    await press(tmux, "q", PROMPT)


async def test_keys_move_to_marks_single_moments_and_the_beginning(tmux: Tmux, recording: Path) -> None:
    await tmux.enter(f"bullpen replay {recording} --idle 0")
    await tmux.until("terminal one")
    await press(tmux, "Space", "-- 0:00 of 18:10, x1, paused --")
    assert "the first question" in await press(tmux, "n", "-- 17:00 of 18:10, x1, paused --")
    assert "terminal two" not in tmux.screen()
    await press(tmux, ".", "terminal two")
    assert "the second question" in await press(tmux, "n", "-- 17:40 of 18:10, x1, paused --")
    await press(tmux, "Right", "-- 17:45 of 18:10, x1, paused --")
    assert "the last event" in await press(tmux, "n", "-- 18:10 of 18:10, x1, paused --")
    await press(tmux, "n", "-- 18:10 of 18:10, x1, paused --")
    await press(tmux, "0", "-- 0:00 of 18:10, x1, paused --")
    await tmux.type(".")
    await tmux.until(lambda screen: screen.count("session start") == 2)


async def test_a_new_speed_shortens_the_current_wait(tmux: Tmux, recording: Path) -> None:
    await tmux.enter(f"bullpen replay {recording} --idle 120")
    await tmux.until("terminal one")
    for speed in ("2", "4", "8", "16"):
        await tmux.type("+")
        await tmux.until(f", x{speed} --")
    await tmux.type("-")
    await tmux.until(lambda screen: screen.strip().endswith(", x8 --"))
    await tmux.type("+", "+")
    await tmux.until("the first question")  # two minutes at 32 times the speed
    await press(tmux, "q", PROMPT)


async def test_idle_time_is_shortened_and_the_end_waits_for_a_key(tmux: Tmux, recording: Path) -> None:
    await tmux.enter(
        f"stty -a > before; bullpen replay {recording} --idle 0.01; stty -a | diff - before && echo as before"
    )
    screen = await tmux.until("the last event")
    assert screen.index("the first question") < screen.index("terminal two") < screen.index("the second")
    await tmux.type("Left")
    await tmux.until(lambda screen: screen.count("the last event") == 2 and "-- 18:05 of" in screen)
    await tmux.type("q")
    await tmux.until("as before\n")


async def test_a_single_terminal_is_drawn_as_it_looked(server: Server, tmux: Tmux) -> None:
    session = await server.new_session(title="job")
    worker = await server.new_terminal(session["id"])
    async with server.socket(f"/ws/session/{session['id']}/worker/{worker['id']}") as ws:
        await ws.send('{"type": "input", "data": "echo fi$()rst; clear; echo sec$()ond; exit\\r"}')
        await server.worker_in(session["id"], worker["id"], "exited")
    await tmux.enter("bullpen replay job/terminal --idle 0.01")
    assert "first" not in await tmux.until(lambda screen: "second\n" in screen)
    await tmux.type("Space", "0")
    await tmux.until(lambda screen: not screen.strip())
    await tmux.type("Space")
    await tmux.until(lambda screen: "second\n" in screen and "first" not in screen)
    await press(tmux, "q", PROMPT)
