"""Document 002, recording, playback, observers and the message queue: requirements 44 to 54."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bullpen.log.replay import PlaybackPace, ReplayPlayer
from support.server import Server
from support.session_client import SessionClient
from web.test_recordings_and_queues import (
    REQUIRED_TYPES,
    EventViewer,
    finished_recording,
    lines,
    metadata,
    without_checksum,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

ARCHITECTURE = Path(__file__).parents[2] / "ARCHITECTURE.md"


async def test_r44_a_session_has_a_directory_with_its_events_and_metadata(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk hello]]")
    directory = await finished_recording(talk)
    assert {path.name for path in directory.iterdir()} == {"events.jsonl", "metadata.json"}
    recorded = without_checksum(lines(directory))
    assert recorded == (await talk.events())[: len(recorded)]
    assert metadata(directory)["id"] == talk.id


async def test_r45_each_type_of_event_is_recorded(talk: SessionClient, repo: dict[str, Any]) -> None:
    (Path(repo["path"]) / "seen.txt").write_text("x")
    files = "[[read seen.txt]] [[write path=made.txt content=y]]"
    await talk.run_turn(f"[[thought hm]] [[chunk hello]] [[plan one]] [[tool]] {files}")
    await talk.prompt(f"[[permission]] [[read {talk.server.home}/token]]")  # is refused, which is an error
    permission = await talk.open_permission()
    path = f"{talk.path}/permissions/{permission['id']}"
    await talk.server.call("POST", path, 204, json={"optionId": "yes"})
    await talk.wait_for_event("error")
    await talk.server.call("POST", f"{talk.path}/complete", 200)
    recorded = lines(await finished_recording(talk))
    assert REQUIRED_TYPES - {line["type"] for line in recorded} == set()


async def test_r46_the_end_marks_the_recording_completed(talk: SessionClient) -> None:
    assert metadata(await finished_recording(talk))["completed"] is False
    ended = await talk.server.call("POST", f"{talk.path}/complete", 200)
    finished = metadata(await finished_recording(talk))
    assert (finished["completed"], finished["endedAt"]) == (True, ended["updatedAt"])


async def test_r47_a_player_steps_peeks_seeks_resets_selects_and_keeps_the_time(talk: SessionClient) -> None:
    await talk.run_turn("[[stream n=3 delay=0.05]] [[tool]]")
    player = ReplayPlayer.open(await finished_recording(talk))
    assert player.peek() == player.next()
    player.seek_seq(3)
    assert player.seq == 2
    assert [event.type for event in player.events_of_type("tool_call")] == ["tool_call"]
    player.reset()
    assert player.position == 0
    times = [moment.time for moment in player]
    for speed in (1.0, 4.0):
        waits = [PlaybackPace(speed).seconds(before, after) for before, after in pairwise(times)]
        assert sum(waits) == pytest.approx((times[-1] - times[0]) / 1e9 / speed)
    player.close()


async def test_r48_each_state_has_an_owner_that_the_architecture_names() -> None:
    table = ARCHITECTURE.read_text().split("## State and its owner")[1].split("##")[0]
    rows = [line.split("|")[1:-1] for line in table.strip().splitlines()[2:]]
    owners = {state.strip(): owner.strip() for state, owner, _ in rows}
    assert owners["open sessions and their tasks"] == "`sessions/sessions.py`"
    assert all(owners.values())
    sources = ARCHITECTURE.parent / "src" / "bullpen"
    named = [owner.split("`")[1] for owner in owners.values() if ".py`" in owner]
    assert [name for name in named if not (sources / name).is_file()] == []


async def test_r49_an_observer_gets_every_event_with_its_seq(talk: SessionClient) -> None:
    observer = EventViewer(talk)
    turn, _ = await asyncio.gather(talk.run_turn("[[stream n=20]] [[plan one]]"), observer.until(1))
    seen = await observer.until(turn["seq"])
    assert [event["seq"] for event in seen] == list(range(1, turn["seq"] + 1))


async def test_r50_a_session_and_seq_name_the_same_event_everywhere_and_for_ever(talk: SessionClient) -> None:
    turn = await talk.run_turn("[[stream n=5]]")
    before = (await talk.events())[: turn["seq"]]
    recorded = without_checksum(lines(await finished_recording(talk)))[: turn["seq"]]
    assert before == recorded == await EventViewer(talk).until(turn["seq"])
    await talk.server.restart()
    assert (await talk.events())[: turn["seq"]] == before


async def test_r51_a_client_names_the_last_seq_it_saw_and_gets_the_rest(talk: SessionClient) -> None:
    turn = await talk.run_turn("[[stream n=5]]")
    for last_seen in (0, 1, turn["seq"] - 1):
        seen = await EventViewer(talk, last_seen).until(turn["seq"])
        assert [event["seq"] for event in seen] == list(range(last_seen + 1, turn["seq"] + 1))


async def test_r52_many_observers_get_the_same_events(talk: SessionClient) -> None:
    observers = [EventViewer(talk) for _ in range(8)]
    turn = await talk.run_turn("[[stream n=20]]")
    seen = await asyncio.gather(*(observer.until(turn["seq"]) for observer in observers))
    assert seen == [(await talk.events())[: turn["seq"]]] * 8


async def test_r53_a_session_runs_when_all_clients_have_disconnected(talk: SessionClient) -> None:
    async with talk.server.socket(f"/ws/session/{talk.id}"):
        await talk.prompt("[[sleep 0.2]] [[chunk alone]]")
    await talk.wait_for_event("turn_end")
    assert await talk.agent_text() == "alone"


async def test_r54_messages_wait_in_the_queue_until_the_agent_is_idle(
    shared: Server, talk: SessionClient
) -> None:
    queue = f"{talk.path}/queue"
    settings = (await shared.call("GET", f"{queue}/settings", 200)).items()
    assert {
        "enabled": True,
        "delay_seconds": 0,
        "max_size": 10,
        "auto_generate_titles": True,
    }.items() <= settings
    await talk.prompt("[[wait_cancel]]")
    item = await shared.call("POST", queue, 201, json={"message": "[[chunk one]]", "client_id": "me"})
    fields = {"id", "message", "image_ids", "queued_at", "client_id", "title", "scheduled_time", "state"}
    assert set(item) == fields
    assert (await shared.call("POST", queue, 400, json={"message": " "}))["error"] == "empty_message"
    other = await shared.call("POST", queue, 201, json={"message": "[[chunk two]]"})
    for _ in range(8):
        last = await shared.call("POST", queue, 201, json={"message": "more"})
    assert (await shared.call("POST", queue, 409, json={"message": "x"}))["error"] == "queue_full"
    await shared.call("DELETE", f"{queue}/{last['id']}", 204)
    await shared.call("GET", f"{queue}/{last['id']}", 404)
    edited = await shared.call("PATCH", f"{queue}/{item['id']}", 200, json={"message": "[[chunk first]]"})
    assert edited["message"] == "[[chunk first]]"
    await shared.call("POST", f"{queue}/{other['id']}/move", json={"direction": "up"})
    waiting = await shared.call("GET", queue, 200)
    assert [each["id"] for each in waiting["messages"][:2]] == [other["id"], item["id"]]
    assert waiting["count"] == 9
    await shared.call("DELETE", queue, 204)
    assert (await shared.call("GET", queue, 200))["count"] == 0
    await shared.call("POST", queue, 201, json={"message": "[[chunk sent]]"})
    async with shared.socket(f"/ws/session/{talk.id}") as ws, asyncio.timeout(30):
        await ws.send(json.dumps({"type": "subscribe", "after": 0, "notices": True}))
        await shared.call("POST", f"{talk.path}/cancel", 204)
        await talk.wait_for_event("turn_end", stopReason="cancelled")
        await shared.call("POST", f"{queue}/resume")  # a cancelled turn pauses the queue
        notices: list[str] = []
        while "queue_message_sent" not in notices:
            notices.append(json.loads(await ws.recv())["type"])
    assert {"queue_updated", "queue_message_sending", "queue_message_titled", "queue_reordered"} <= set(
        notices
    )
    await talk.wait_for_event("agent_message", text="sent")
    await shared.call("POST", f"{queue}/pause")
    kept, at_once = [
        await shared.call("POST", queue, 201, json={"message": f"[[chunk {word}]]"})
        for word in ("kept", "now")
    ]
    await shared.call("POST", f"{queue}/{at_once['id']}/send-now")
    await talk.wait_for_event("user_prompt", promptId=at_once["id"])
    await talk.wait_for_event("agent_message", text="now")
    await shared.restart()
    assert [each["id"] for each in (await shared.call("GET", queue, 200))["messages"]] == [kept["id"]]
    await shared.call("POST", f"{queue}/resume")
    await talk.wait_for_event("agent_message", text="kept")
