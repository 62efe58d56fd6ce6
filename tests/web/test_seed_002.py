"""Seed 002 by its numbers, R44 to R54, and S-28: recordings, players, observers and queues."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import bullpen
from bullpen.domain.snapshot import Snapshot, fold_all
from bullpen.log.replay import PlaybackPace, ReplayPlayer
from bullpen.log.tracks import ChatMoment
from bullpen.wire.browser import session_json
from support.pictures import png
from support.scripted_agent.journal import message_of, read_journal
from support.server import Server
from support.session_client import SessionClient, define_scripted
from web.people import bearer

pytestmark = pytest.mark.asyncio(loop_scope="module")

SOURCE = Path(bullpen.__file__).parent
R45 = {
    *("session_start", "session_end", "user_prompt", "agent_message", "agent_thought", "tool_call"),
    *("tool_call_update", "plan", "permission", "file_read", "file_write", "error"),
}
HIDDEN = {
    "toolCallId": "call-hidden",
    "title": "List files\u202e",
    "kind": "execute",
    "rawInput": {"command": ["rm", "-rf", "/"]},
    "content": [{"type": "diff", "path": "/x/notes", "oldText": "mine", "newText": "gone"}],
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A server with the scripted agent."""
    place = tmp_path_factory.mktemp("seed")
    (place / "workspace").mkdir()
    server = Server(place / "home", place / "workspace", {"AGENT_MAX_SESSIONS": "0"})
    await server.start()
    await define_scripted(server)
    yield server
    await server.close()


@pytest_asyncio.fixture(loop_scope="module")
async def talk(desk: Server) -> SessionClient:
    return await SessionClient.begin(desk)


async def end(talk: SessionClient) -> dict[str, Any]:
    ended: dict[str, Any] = await talk.server.call("POST", f"{talk.path}/complete", 200)
    return ended


async def recorded(talk: SessionClient) -> Path:
    """Where the recording is, once it holds all that has happened."""
    place = talk.server.home / "recordings" / talk.id
    head = (await talk.server.call("GET", talk.path))["lastSeq"]
    async with asyncio.timeout(30):
        while not (place / "metadata.json").exists() or metadata(place)["lastSeq"] < head:
            await asyncio.sleep(0.02)
    return place


def metadata(place: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads((place / "metadata.json").read_text())
    return said


def lines(place: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (place / "events.jsonl").read_text().splitlines()]


def plain(told: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what only a file needs."""
    return [{name: value for name, value in line.items() if name != "crc"} for line in told]


class Observer:
    """Somebody who watches a session; `events` is all they have seen."""

    def __init__(self, talk: SessionClient, after: int = 0) -> None:
        self.events: list[dict[str, Any]] = []
        self._talk = talk
        self._after = after

    async def until(self, seq: int) -> list[dict[str, Any]]:
        """Watches until an event of this number is there."""
        async with self._talk.server.socket(f"/ws/session/{self._talk.id}") as ws, asyncio.timeout(30):
            await ws.send(json.dumps({"type": "subscribe", "after": self._after}))
            while self._after < seq:
                frame = json.loads(await ws.recv())
                for event in frame["events"] if frame["type"] == "events" else ():
                    self.events.append(event)
                    self._after = event["seq"]
        return [event for event in self.events if event["seq"] <= seq]


# The recorder


async def test_r44_a_session_has_a_directory_with_its_events_and_its_metadata(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk hello]]")
    place = await recorded(talk)
    assert {path.name for path in place.iterdir()} == {"events.jsonl", "metadata.json"}
    told = plain(lines(place))
    assert told == (await talk.events())[: len(told)]
    assert (metadata(place)["id"], metadata(place)["completed"]) == (talk.id, False)


async def test_r45_every_type_of_event_of_the_seed_is_recorded(talk: SessionClient) -> None:
    place = talk.server.workspace / "r45"
    place.mkdir()
    (place / "seen.txt").write_text("x")
    steps = "[[thought hm]] [[chunk hello]] [[plan one]] [[tool]] [[read r45/seen.txt]]"
    await talk.run_turn(f"{steps} [[write path=r45/made.txt content=y]]")
    await talk.prompt("[[permission]] [[read /etc/hostname]]")
    permission = await talk.open_permission()
    path = f"{talk.path}/permissions/{permission['id']}"
    await talk.server.call("POST", path, 204, json={"optionId": "yes"})
    refused = await talk.wait_for_event("error")
    assert "/etc/hostname" in refused["data"]["message"]
    await end(talk)
    told = lines(await recorded(talk))
    assert R45 - {line["type"] for line in told} == set()
    assert all({"seq", "type", "timestamp", "data"} <= set(line) for line in told)


async def test_r46_its_end_marks_a_recording_completed(talk: SessionClient) -> None:
    assert metadata(await recorded(talk))["completed"] is False
    ended = await end(talk)
    said = metadata(await recorded(talk))
    assert (said["completed"], said["endedAt"]) == (True, ended["updatedAt"])
    assert lines(await recorded(talk))[-1]["type"] == "session_end"


# The player


async def test_r47_a_player_goes_on_looks_ahead_seeks_and_goes_back(talk: SessionClient) -> None:
    await talk.run_turn("[[stream n=3]] [[tool]]")
    await end(talk)
    player = ReplayPlayer.open(await recorded(talk))
    events = await talk.events()
    assert player.peek() == player.next()
    assert (player.position, player.seq) == (1, 1)
    player.seek_seq(len(events))
    moment = player.next()
    assert isinstance(moment, ChatMoment)
    assert (moment.event.type, player.next()) == ("session_end", None)
    player.seek_time(moment.time)
    assert player.peek() is not None
    player.reset()
    assert player.position == 0
    assert [event.seq for event in player.events_of_type("tool_call")] == [
        event["seq"] for event in events if event["type"] == "tool_call"
    ]
    assert [event.seq for event in player.events()] == [event["seq"] for event in events]
    player.close()


async def test_r47_it_plays_in_the_real_timing_and_at_other_speeds(talk: SessionClient) -> None:
    await talk.run_turn("[[stream n=5 delay=0.05]]")
    player = ReplayPlayer.open(await recorded(talk))
    times = [moment.time for moment in player]
    for speed in (1.0, 4.0):
        waits = [PlaybackPace(speed).seconds(before, after) for before, after in pairwise(times)]
        assert sum(waits) == pytest.approx((times[-1] - times[0]) / 1e9 / speed)
    loop = asyncio.get_running_loop()
    took = {}
    for speed in (1.0, 50.0):
        player.reset()
        began = loop.time()
        played = [moment.time async for moment in player.play(PlaybackPace(speed))]
        took[speed] = loop.time() - began
        assert played == times
        assert took[speed] >= (times[-1] - times[0]) / 1e9 / speed - 0.01  # never before its time
    player.close()


async def test_what_was_played_adds_up_to_the_live_session(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk a]] [[plan one]] [[tool]]")
    for message in ("[[chunk b]]", "[[chunk c]]"):
        await talk.server.call("POST", f"{talk.path}/queue/pause")
        await talk.server.call("POST", f"{talk.path}/queue", 201, json={"message": message})
    live = await talk.server.logged_session(talk.id)
    player = ReplayPlayer.open(await recorded(talk))
    played = (event for event in player.events() if event.seq <= live["lastSeq"])
    folded = session_json(fold_all(Snapshot(id=talk.id), played))
    assert folded == {name: live[name] for name in folded}
    player.close()


# Who owns what


async def test_r48_who_owns_what_is_visible_in_the_modules() -> None:
    """What the seed names has one module each, and what each owns nobody else touches."""
    assert _who_says("insert_values(connection, events,") == ["store/group.py"]  # the stored events
    assert _who_says("SpoolWriter(") == ["keeper/child.py"]  # what programs say
    assert _who_says("append_events(") == ["log/event_file.py", "log/recordings.py"]  # the files
    assert _who_says("Session(log,", "Session(session_log,") == ["sessions/sessions.py"]  # running sessions
    assert _who_says("async for batch in paced(self._log") == ["web/sockets/session.py"]  # observers


def _who_says(*words: str) -> list[str]:
    files = sorted(SOURCE.rglob("*.py"))
    return [
        str(path.relative_to(SOURCE)) for path in files if any(word in path.read_text() for word in words)
    ]


# Observers


async def test_r49_an_observer_gets_every_event_with_its_seq(talk: SessionClient) -> None:
    observer = Observer(talk)
    turn, _ = await asyncio.gather(talk.run_turn("[[stream n=20]] [[plan one]] [[tool]]"), observer.until(1))
    seen = await observer.until(turn["seq"])
    assert [event["seq"] for event in seen] == list(range(1, turn["seq"] + 1))
    assert seen == (await talk.events())[: turn["seq"]]


async def test_r50_the_same_session_and_seq_are_the_same_event_everywhere_for_ever(
    talk: SessionClient,
) -> None:
    turn = await talk.run_turn("[[stream n=5]]")
    before = await talk.events()
    place = await recorded(talk)
    exported = (await talk.server.http.get(f"{talk.path}/export?format=jsonl")).text.splitlines()
    for told in (
        await Observer(talk).until(turn["seq"]),
        plain(lines(place)),
        plain(map(json.loads, exported)),
    ):
        assert told[: turn["seq"]] == before[: turn["seq"]]
    await talk.server.restart()
    assert (await talk.events())[: len(before)] == before


async def test_r51_a_client_says_the_last_seq_it_saw_and_gets_the_rest(talk: SessionClient) -> None:
    turn = await talk.run_turn("[[stream n=5]]")
    for after in (0, 1, turn["seq"] // 2, turn["seq"] - 1):
        seen = await Observer(talk, after).until(turn["seq"])
        assert [event["seq"] for event in seen] == list(range(after + 1, turn["seq"] + 1))


async def test_r52_many_observers_at_once_see_the_same(talk: SessionClient) -> None:
    observers = [Observer(talk) for _ in range(12)]
    async with asyncio.TaskGroup() as tasks:
        for observer in observers:
            tasks.create_task(observer.until(2))
        turn = await talk.run_turn("[[stream n=30]]")
    seen = await asyncio.gather(*(observer.until(turn["seq"]) for observer in observers))
    assert all(each == seen[0] for each in seen)
    assert seen[0] == (await talk.events())[: turn["seq"]]


async def test_r53_a_session_runs_with_no_observer(talk: SessionClient) -> None:
    async with talk.server.socket(f"/ws/session/{talk.id}"):
        await talk.prompt("[[sleep 0.2]] [[chunk alone]]")
        await talk.wait_for_event("turn_start")
    await talk.wait_for_event("turn_end")
    assert await talk.agent_text() == "alone"


# The message queue


LONG = "please " * 20 + "fix the build"


class Queue:
    """The queue of a session, as a client uses it."""

    def __init__(self, talk: SessionClient) -> None:
        self.talk = talk
        self._path = f"{talk.path}/queue"

    async def add(self, message: str, **more: Any) -> dict[str, Any]:
        body = {"message": message, **more}
        item: dict[str, Any] = await self.talk.server.call("POST", self._path, 201, json=body)
        return item

    async def order(self, what: str, **body: Any) -> None:
        await self.talk.server.call("POST", f"{self._path}/{what}", json=body)

    async def edit(self, item: dict[str, Any], **changes: Any) -> dict[str, Any]:
        edited: dict[str, Any] = await self.talk.server.call(
            "PATCH", f"{self._path}/{item['id']}", 200, json=changes
        )
        return edited

    async def items(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = (await self.talk.server.call("GET", self._path))["messages"]
        return items

    async def titled(self, item: dict[str, Any]) -> str:
        event = await self.talk.wait_for_event("queue_titled", id=item["id"])
        assert [each["title"] for each in await self.items() if each["id"] == item["id"]] == [
            event["data"]["title"]
        ]
        return str(event["data"]["title"])


async def with_titles(desk: Server, agent_id: str, *program: str) -> Queue:
    """A paused queue of an agent that is asked for titles by a program."""
    await define_scripted(desk, agent_id)
    agents = (await desk.call("GET", "/api/agents"))["agents"]
    (command,) = [each["command"] for each in agents if each["id"] == agent_id]
    body = {"name": "T", "kind": "acp", "command": command, "titleCommand": list(program)}
    await desk.call("PUT", f"/api/agents/{agent_id}", 200, json=body)
    queue = Queue(await SessionClient.begin(desk, agent_id))
    await queue.order("pause")
    return queue


async def test_r54_notices_have_the_names_of_the_seed_and_its_order(talk: SessionClient) -> None:
    queue = Queue(talk)
    await queue.order("pause")
    one, two = [await queue.add(f"[[chunk {word}]]") for word in ("one", "two")]
    await queue.order(f"{two['id']}/move", direction="up")
    await queue.edit(one, message="[[chunk edited]]")
    await queue.order("resume")
    end = await talk.wait_for_event(
        "turn_end", after=(await talk.wait_for_event("user_prompt", promptId=one["id"]))["seq"]
    )
    notices = await notices_until(talk, end["seq"])
    told = [notice for notice in notices if notice["message_id"] == one["id"]]
    assert [(notice["type"], notice.get("action")) for notice in told] == [
        ("queue_updated", "added"),
        ("queue_message_titled", None),
        ("queue_updated", "edited"),
        ("queue_message_titled", None),
        ("queue_message_sending", None),
        ("queue_message_sent", None),
    ]
    assert [notice["title"] for notice in told if "title" in notice] == ["[[chunk one]]", "[[chunk edited]]"]
    assert [notice["message_id"] for notice in notices if notice["type"] == "queue_reordered"] == [two["id"]]
    assert [each["session_id"] for each in notices] == [talk.id] * len(notices)
    assert [each["seq"] for each in notices] == sorted({each["seq"] for each in notices})
    assert await talk.agent_text() == "twoedited"


async def notices_until(talk: SessionClient, seq: int) -> list[dict[str, Any]]:
    """All that is told of the queue up to an event, also to one who comes late."""
    notices, head = [], 0
    async with talk.server.socket(f"/ws/session/{talk.id}") as ws, asyncio.timeout(30):
        await ws.send(json.dumps({"type": "subscribe", "after": 0, "notices": True}))
        while head < seq:
            frame = json.loads(await ws.recv())
            if frame["type"] == "events":
                head = frame["events"][-1]["seq"]
            elif frame["type"].startswith("queue_"):
                notices.append(frame)
    return notices


async def test_r54_a_title_comes_from_the_agents_own_command_or_from_the_words(desk: Server) -> None:
    queue = await with_titles(desk, "titler", "sh", "-c", 'pwd >&2; echo "  \\"A fine title\\""', "{prompt}")
    assert await queue.titled(await queue.add(LONG)) == "A fine title"
    short = await queue.add("fix it")
    assert short["title"] == "fix it"
    own = await queue.add(LONG, title="mine")
    assert (own["title"], (await queue.edit(own, message="other"))["title"]) == ("mine", "mine")
    settings = f"{queue.talk.path}/queue/settings"
    await desk.call("PUT", settings, 200, json={"auto_generate_titles": False})
    assert (await queue.add("untitled"))["title"] is None


@pytest.mark.parametrize("program", [("false",), ("no-such-program",), ("true",)])
async def test_r54_an_agent_that_gives_no_title_leaves_the_first_words(desk: Server, program: Any) -> None:
    queue = await with_titles(desk, f"mute-{program[0]}", *program)
    title = await queue.titled(await queue.add(LONG))
    assert title.startswith("please please")
    assert title.endswith("…")


async def test_r54_what_is_scheduled_waits_for_its_time_and_lets_the_others_by(talk: SessionClient) -> None:
    queue = Queue(talk)
    late = await queue.add("[[chunk late]]", scheduled_time="2999-01-01T00:00:00Z")
    assert late["scheduled_time"] == "2999-01-01T00:00:00.000Z"
    soon = (datetime.now(UTC) + timedelta(seconds=1.5)).isoformat()
    timed = await queue.add("[[chunk timed]]", scheduled_time=soon)
    now = await queue.add("[[chunk now]]")
    await talk.wait_for_event("user_prompt", promptId=now["id"])
    sent = await talk.wait_for_event("user_prompt", promptId=timed["id"])
    assert datetime.fromisoformat(sent["timestamp"]) >= datetime.fromisoformat(timed["scheduled_time"])
    assert (await talk.prompt("[[chunk at-once]]"))["queued"] in (True, False)
    assert [item["id"] for item in await queue.items() if item["scheduled_time"]] == [late["id"]]
    await queue.edit(late, scheduled_time=None)
    await talk.wait_for_event("user_prompt", promptId=late["id"])
    for wrong in ("tomorrow", "2999-01-01T00:00:00"):
        body = {"message": "x", "scheduled_time": wrong}
        await talk.server.call("POST", f"{talk.path}/queue", 400, json=body)


async def test_r54_attachments_reach_the_agent_with_their_message(desk: Server) -> None:
    journal = await define_scripted(desk, "looker")
    talk = await SessionClient.begin(desk, "looker")
    image = (await desk.http.post(f"{talk.path}/images", content=png())).json()
    item = await Queue(talk).add("", image_ids=[image["id"]])
    prompt = await talk.wait_for_event("user_prompt", promptId=item["id"])
    assert prompt["data"]["imageIds"] == [image["id"]]
    await talk.wait_for_event("turn_end")
    got = [message_of(record) for record in read_journal(journal) if record["dir"] == "in"]
    (content,) = [each["params"]["prompt"] for each in got if each.get("method") == "session/prompt"]
    assert [part["type"] for part in content if part["type"] == "image"] == ["image"]


async def test_r54_a_post_wakes_an_agent_that_is_not_running(talk: SessionClient) -> None:
    await talk.run_turn("[[chunk here]]")
    await talk.prompt("[[exit code=3]]")
    await talk.wait_for_event("worker_failed")
    await talk.prompt("x", expect=409)
    item = await Queue(talk).add("[[chunk back]]")
    prompt = await talk.wait_for_event("user_prompt", promptId=item["id"])
    await talk.wait_for_event("turn_end", after=prompt["seq"])
    assert ((await talk.worker())["run"], await talk.agent_text()) == (2, "hereback")


# S-28


async def test_s28_a_permission_shows_what_it_is_for_and_is_answered_once_from_two_devices(
    desk: Server,
) -> None:
    params = {"toolCall": HIDDEN, "options": [{"optionId": "yes", "name": "OK", "kind": "allow_once"}]}
    ask = {"do": "ask", "method": "session/request_permission", "params": params, "wait": False}
    pretend = {"do": "tool_update", "toolCallId": HIDDEN["toolCallId"], "rawInput": {"command": ["ls"]}}
    journal = await define_scripted(desk, "sly", {"prompts": [[ask, pretend, {"do": "wait_cancel"}]]})
    talk = await SessionClient.begin(desk, "sly")
    await talk.prompt("go")
    await talk.wait_for_event("tool_call_update")  # what the agent says of it later changes nothing
    permission = await talk.open_permission()
    assert permission["toolCall"] == HIDDEN
    path, body = f"{talk.path}/permissions/{permission['id']}", {"optionId": "yes"}
    devices = [await bearer(desk, scope="operate") for _ in range(2)]
    answers = await asyncio.gather(
        *(desk.http.post(path, json=body, headers=device) for device in devices for _ in range(2))
    )
    assert sorted(answer.status_code for answer in answers) == [204, 409, 409, 409]
    await desk.call("POST", f"{talk.path}/cancel", 204)
    await talk.wait_for_event("turn_end", stopReason="cancelled")
    late = await desk.http.post(path, json=body, headers=devices[0])
    assert (late.status_code, late.json()["error"]) == (409, "conflict")
    states = [each["data"] for each in await talk.events() if each["type"] == "permission"]
    assert [(state["status"], state["toolCall"]) for state in states] == [
        ("pending", HIDDEN),
        ("selected", HIDDEN),
    ]
    got = [message_of(record) for record in read_journal(journal) if record["dir"] == "in"]
    outcomes = [message["result"]["outcome"] for message in got if "outcome" in (message.get("result") or {})]
    assert outcomes == [{"outcome": "selected", "optionId": "yes"}]


async def test_s28_an_answer_that_comes_when_the_turn_is_over_is_refused(talk: SessionClient) -> None:
    await talk.prompt("[[permission]]")
    permission = await talk.open_permission()
    await talk.server.call("POST", f"{talk.path}/cancel", 204)
    await talk.wait_for_event("turn_end", stopReason="cancelled")
    path = f"{talk.path}/permissions/{permission['id']}"
    await talk.server.call("POST", path, 409, json={"optionId": "yes"})
