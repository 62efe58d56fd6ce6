"""Recordings, playback, viewers of a session, the message queue, and permissions from two devices."""

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
from web.clients import new_token_headers

pytestmark = pytest.mark.asyncio(loop_scope="session")

SOURCE = Path(bullpen.__file__).parent
REQUIRED_TYPES = {
    *("session_start", "session_end", "user_prompt", "agent_message", "agent_thought", "tool_call"),
    *("tool_call_update", "plan", "permission", "file_read", "file_write", "error"),
}
DECEPTIVE_CALL = {
    "toolCallId": "call-hidden",
    "title": "List files\u202e",
    "kind": "execute",
    "rawInput": {"command": ["rm", "-rf", "/"]},
    "content": [{"type": "diff", "path": "/x/notes", "oldText": "mine", "newText": "gone"}],
}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def unlimited_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A server with the scripted agent and no limit of sessions."""
    directory = tmp_path_factory.mktemp("recordings")
    (directory / "workspace").mkdir()
    server = Server(directory / "home", directory / "workspace", {"AGENT_MAX_SESSIONS": "0"})
    await server.start()
    await define_scripted(server)
    yield server
    await server.close()


@pytest_asyncio.fixture(loop_scope="session")
async def conversation(unlimited_server: Server) -> SessionClient:
    return await SessionClient.begin(unlimited_server)


async def complete(conversation: SessionClient) -> dict[str, Any]:
    ended: dict[str, Any] = await conversation.server.call("POST", f"{conversation.path}/complete", 200)
    return ended


async def finished_recording(conversation: SessionClient) -> Path:
    """Return the directory of the recording, once it has all events of the session."""
    directory = conversation.server.home / "recordings" / conversation.id
    head = (await conversation.server.call("GET", conversation.path))["lastSeq"]
    async with asyncio.timeout(30):
        while not (directory / "metadata.json").exists() or metadata(directory)["lastSeq"] < head:
            await asyncio.sleep(0.02)
    return directory


def metadata(directory: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((directory / "metadata.json").read_text())
    return read


def lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "events.jsonl").read_text().splitlines()]


def without_checksum(recorded_events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events of a file without the checksum, which only the file has."""
    return [{name: value for name, value in line.items() if name != "crc"} for line in recorded_events]


class EventViewer:
    """A viewer of a session; `events` are all events that it has received."""

    def __init__(self, conversation: SessionClient, after: int = 0) -> None:
        self.events: list[dict[str, Any]] = []
        self._conversation = conversation
        self._after = after

    async def until(self, seq: int) -> list[dict[str, Any]]:
        """Follow the session until the event with this seq; return the events up to it."""
        async with (
            self._conversation.server.socket(f"/ws/session/{self._conversation.id}") as ws,
            asyncio.timeout(30),
        ):
            await ws.send(json.dumps({"type": "subscribe", "after": self._after}))
            while self._after < seq:
                frame = json.loads(await ws.recv())
                for event in frame["events"] if frame["type"] == "events" else ():
                    self.events.append(event)
                    self._after = event["seq"]
        return [event for event in self.events if event["seq"] <= seq]


# The recorder


async def test_a_recording_is_a_directory_with_events_and_metadata(conversation: SessionClient) -> None:
    await conversation.run_turn("[[chunk hello]]")
    directory = await finished_recording(conversation)
    assert {path.name for path in directory.iterdir()} == {"events.jsonl", "metadata.json"}
    recorded_events = without_checksum(lines(directory))
    assert recorded_events == (await conversation.events())[: len(recorded_events)]
    assert (metadata(directory)["id"], metadata(directory)["completed"]) == (conversation.id, False)


async def test_every_required_type_of_event_is_recorded(conversation: SessionClient) -> None:
    directory = conversation.server.workspace / "every_type"
    directory.mkdir()
    (directory / "seen.txt").write_text("x")
    steps = "[[thought hm]] [[chunk hello]] [[plan one]] [[tool]] [[read every_type/seen.txt]]"
    await conversation.run_turn(f"{steps} [[write path=every_type/made.txt content=y]]")
    await conversation.prompt(f"[[permission]] [[read {conversation.server.home}/token]]")
    permission = await conversation.open_permission()
    path = f"{conversation.path}/permissions/{permission['id']}"
    await conversation.server.call("POST", path, 204, json={"optionId": "yes"})
    refused = await conversation.wait_for_event("error")
    assert "the agent was refused a file" in refused["data"]["message"]
    await complete(conversation)
    recorded_events = lines(await finished_recording(conversation))
    assert REQUIRED_TYPES - {line["type"] for line in recorded_events} == set()
    assert all({"seq", "type", "timestamp", "data"} <= set(line) for line in recorded_events)


async def test_the_end_of_a_session_marks_its_recording_completed(conversation: SessionClient) -> None:
    assert metadata(await finished_recording(conversation))["completed"] is False
    ended = await complete(conversation)
    head = metadata(await finished_recording(conversation))
    assert (head["completed"], head["endedAt"]) == (True, ended["updatedAt"])
    assert lines(await finished_recording(conversation))[-1]["type"] == "session_end"


# The player


async def test_a_player_steps_peeks_seeks_and_resets(conversation: SessionClient) -> None:
    await conversation.run_turn("[[stream n=3]] [[tool]]")
    await complete(conversation)
    player = ReplayPlayer.open(await finished_recording(conversation))
    events = await conversation.events()
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


async def test_a_player_plays_in_real_time_and_at_other_speeds(conversation: SessionClient) -> None:
    await conversation.run_turn("[[stream n=5 delay=0.05]]")
    player = ReplayPlayer.open(await finished_recording(conversation))
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
        assert took[speed] >= (times[-1] - times[0]) / 1e9 / speed - 0.01  # no moment is played too early
    player.close()


async def test_the_played_events_fold_to_the_live_session(conversation: SessionClient) -> None:
    await conversation.run_turn("[[chunk a]] [[plan one]] [[tool]]")
    for message in ("[[chunk b]]", "[[chunk c]]"):
        await conversation.server.call("POST", f"{conversation.path}/queue/pause")
        await conversation.server.call("POST", f"{conversation.path}/queue", 201, json={"message": message})
    live = await conversation.server.logged_session(conversation.id)
    player = ReplayPlayer.open(await finished_recording(conversation))
    played = (event for event in player.events() if event.seq <= live["lastSeq"])
    folded = session_json(fold_all(Snapshot(id=conversation.id), played))
    assert folded == {name: live[name] for name in folded}
    player.close()


# Modules and shared resources


async def test_each_shared_resource_is_used_in_its_own_modules_only() -> None:
    """Check that the code which uses a shared resource occurs only in the modules of that resource."""
    # Stored events, output of programs, event files, running sessions, and events for viewers.
    assert _modules_containing("insert_values(connection, events,") == ["store/append_group.py"]
    assert _modules_containing("SpoolWriter(") == ["keeper/child.py"]
    assert _modules_containing("append_events(") == ["log/event_file.py", "log/recording_store.py"]
    assert _modules_containing("Session(log,", "Session(session_log,") == ["sessions/sessions.py"]
    assert _modules_containing("async for batch in paced(self._log") == ["web/sockets/session.py"]


def _modules_containing(*texts: str) -> list[str]:
    files = sorted(SOURCE.rglob("*.py"))
    return [
        str(path.relative_to(SOURCE)) for path in files if any(each in path.read_text() for each in texts)
    ]


# Viewers


async def test_a_viewer_gets_every_event_with_its_seq(conversation: SessionClient) -> None:
    viewer = EventViewer(conversation)
    turn, _ = await asyncio.gather(
        conversation.run_turn("[[stream n=20]] [[plan one]] [[tool]]"), viewer.until(1)
    )
    seen = await viewer.until(turn["seq"])
    assert [event["seq"] for event in seen] == list(range(1, turn["seq"] + 1))
    assert seen == (await conversation.events())[: turn["seq"]]


async def test_a_session_and_seq_name_the_same_event_in_every_output(conversation: SessionClient) -> None:
    turn = await conversation.run_turn("[[stream n=5]]")
    before = await conversation.events()
    directory = await finished_recording(conversation)
    exported = (
        await conversation.server.http.get(f"{conversation.path}/export?format=jsonl")
    ).text.splitlines()
    for events in (
        await EventViewer(conversation).until(turn["seq"]),
        without_checksum(lines(directory)),
        without_checksum(map(json.loads, exported)),
    ):
        assert events[: turn["seq"]] == before[: turn["seq"]]
    await conversation.server.restart()
    assert (await conversation.events())[: len(before)] == before


async def test_a_viewer_names_its_last_seq_and_gets_the_later_events(conversation: SessionClient) -> None:
    turn = await conversation.run_turn("[[stream n=5]]")
    for after in (0, 1, turn["seq"] // 2, turn["seq"] - 1):
        seen = await EventViewer(conversation, after).until(turn["seq"])
        assert [event["seq"] for event in seen] == list(range(after + 1, turn["seq"] + 1))


async def test_many_viewers_at_once_get_the_same_events(conversation: SessionClient) -> None:
    viewers = [EventViewer(conversation) for _ in range(12)]
    async with asyncio.TaskGroup() as tasks:
        for viewer in viewers:
            tasks.create_task(viewer.until(2))
        turn = await conversation.run_turn("[[stream n=30]]")
    seen = await asyncio.gather(*(viewer.until(turn["seq"]) for viewer in viewers))
    assert all(each == seen[0] for each in seen)
    assert seen[0] == (await conversation.events())[: turn["seq"]]


async def test_a_session_continues_without_viewers(conversation: SessionClient) -> None:
    async with conversation.server.socket(f"/ws/session/{conversation.id}"):
        await conversation.prompt("[[sleep 0.2]] [[chunk alone]]")
        await conversation.wait_for_event("turn_start")
    await conversation.wait_for_event("turn_end")
    assert await conversation.agent_text() == "alone"


# The message queue


LONG = "please " * 20 + "fix the build"


class Queue:
    """The queue of a session, as a client uses it."""

    def __init__(self, conversation: SessionClient) -> None:
        self.conversation = conversation
        self._path = f"{conversation.path}/queue"

    async def add(self, message: str, **more: Any) -> dict[str, Any]:
        body = {"message": message, **more}
        item: dict[str, Any] = await self.conversation.server.call("POST", self._path, 201, json=body)
        return item

    async def order(self, action: str, **body: Any) -> None:
        await self.conversation.server.call("POST", f"{self._path}/{action}", json=body)

    async def edit(self, item: dict[str, Any], **changes: Any) -> dict[str, Any]:
        edited: dict[str, Any] = await self.conversation.server.call(
            "PATCH", f"{self._path}/{item['id']}", 200, json=changes
        )
        return edited

    async def items(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = (await self.conversation.server.call("GET", self._path))["messages"]
        return items

    async def titled(self, item: dict[str, Any]) -> str:
        event = await self.conversation.wait_for_event("queue_titled", id=item["id"])
        assert [each["title"] for each in await self.items() if each["id"] == item["id"]] == [
            event["data"]["title"]
        ]
        return str(event["data"]["title"])


async def with_titles(unlimited_server: Server, agent_id: str, *program: str) -> Queue:
    """Return a paused queue whose agent has a command that prints a title."""
    await define_scripted(unlimited_server, agent_id)
    agents = (await unlimited_server.call("GET", "/api/agents"))["agents"]
    (command,) = [each["command"] for each in agents if each["id"] == agent_id]
    body = {"name": "T", "kind": "acp", "command": command, "titleCommand": list(program)}
    await unlimited_server.call("PUT", f"/api/agents/{agent_id}", 200, json=body)
    queue = Queue(await SessionClient.begin(unlimited_server, agent_id))
    await queue.order("pause")
    return queue


async def test_queue_notices_have_their_documented_names_and_order(conversation: SessionClient) -> None:
    queue = Queue(conversation)
    await queue.order("pause")
    one, two = [await queue.add(f"[[chunk {word}]]") for word in ("one", "two")]
    await queue.order(f"{two['id']}/move", direction="up")
    await queue.edit(one, message="[[chunk edited]]")
    await queue.order("resume")
    turn_end = await conversation.wait_for_event(
        "turn_end", after=(await conversation.wait_for_event("user_prompt", promptId=one["id"]))["seq"]
    )
    notices = await notices_until(conversation, turn_end["seq"])
    of_first = [notice for notice in notices if notice["message_id"] == one["id"]]
    assert [(notice["type"], notice.get("action")) for notice in of_first] == [
        ("queue_updated", "added"),
        ("queue_message_titled", None),
        ("queue_updated", "edited"),
        ("queue_message_titled", None),
        ("queue_message_sending", None),
        ("queue_message_sent", None),
    ]
    assert [notice["title"] for notice in of_first if "title" in notice] == [
        "[[chunk one]]",
        "[[chunk edited]]",
    ]
    assert [notice["message_id"] for notice in notices if notice["type"] == "queue_reordered"] == [two["id"]]
    assert [each["session_id"] for each in notices] == [conversation.id] * len(notices)
    assert [each["seq"] for each in notices] == sorted({each["seq"] for each in notices})
    assert await conversation.agent_text() == "twoedited"


async def notices_until(conversation: SessionClient, seq: int) -> list[dict[str, Any]]:
    """Return all queue notices up to an event, as a viewer that connects later receives them."""
    notices, head = [], 0
    async with conversation.server.socket(f"/ws/session/{conversation.id}") as ws, asyncio.timeout(30):
        await ws.send(json.dumps({"type": "subscribe", "after": 0, "notices": True}))
        while head < seq:
            frame = json.loads(await ws.recv())
            if frame["type"] == "events":
                head = frame["events"][-1]["seq"]
            elif frame["type"].startswith("queue_"):
                notices.append(frame)
    return notices


async def test_a_title_comes_from_the_command_of_the_agent_or_from_the_message(
    unlimited_server: Server,
) -> None:
    queue = await with_titles(
        unlimited_server, "titler", "sh", "-c", 'pwd >&2; echo "  \\"A fine title\\""', "{prompt}"
    )
    assert await queue.titled(await queue.add(LONG)) == "A fine title"
    short = await queue.add("fix it")
    assert short["title"] == "fix it"
    own = await queue.add(LONG, title="mine")
    assert (own["title"], (await queue.edit(own, message="other"))["title"]) == ("mine", "mine")
    settings = f"{queue.conversation.path}/queue/settings"
    await unlimited_server.call("PUT", settings, 200, json={"auto_generate_titles": False})
    assert (await queue.add("untitled"))["title"] is None


@pytest.mark.parametrize("program", [("false",), ("no-such-program",), ("true",)])
async def test_without_a_title_from_the_agent_the_first_words_are_the_title(
    unlimited_server: Server, program: Any
) -> None:
    queue = await with_titles(unlimited_server, f"mute-{program[0]}", *program)
    title = await queue.titled(await queue.add(LONG))
    assert title.startswith("please please")
    assert title.endswith("…")


async def test_a_scheduled_message_waits_for_its_time_and_delays_no_other(
    conversation: SessionClient,
) -> None:
    queue = Queue(conversation)
    late = await queue.add("[[chunk late]]", scheduled_time="2999-01-01T00:00:00Z")
    assert late["scheduled_time"] == "2999-01-01T00:00:00.000Z"
    soon = (datetime.now(UTC) + timedelta(seconds=1.5)).isoformat()
    timed = await queue.add("[[chunk timed]]", scheduled_time=soon)
    now = await queue.add("[[chunk now]]")
    await conversation.wait_for_event("user_prompt", promptId=now["id"])
    sent = await conversation.wait_for_event("user_prompt", promptId=timed["id"])
    assert datetime.fromisoformat(sent["timestamp"]) >= datetime.fromisoformat(timed["scheduled_time"])
    await conversation.wait_for_event("turn_end", after=sent["seq"])
    assert (await conversation.prompt("[[chunk at-once]]"))["queued"] is False
    assert [item["id"] for item in await queue.items() if item["scheduled_time"]] == [late["id"]]
    await queue.edit(late, scheduled_time=None)
    await conversation.wait_for_event("user_prompt", promptId=late["id"])
    for wrong in ("tomorrow", "2999-01-01T00:00:00"):
        body = {"message": "x", "scheduled_time": wrong}
        await conversation.server.call("POST", f"{conversation.path}/queue", 400, json=body)


async def test_images_of_a_queued_message_are_sent_to_the_agent(unlimited_server: Server) -> None:
    journal = await define_scripted(unlimited_server, "looker")
    conversation = await SessionClient.begin(unlimited_server, "looker")
    image = (await unlimited_server.http.post(f"{conversation.path}/images", content=png())).json()
    item = await Queue(conversation).add("", image_ids=[image["id"]])
    prompt = await conversation.wait_for_event("user_prompt", promptId=item["id"])
    assert prompt["data"]["imageIds"] == [image["id"]]
    await conversation.wait_for_event("turn_end")
    received = [message_of(record) for record in read_journal(journal) if record["dir"] == "in"]
    (content,) = [each["params"]["prompt"] for each in received if each.get("method") == "session/prompt"]
    assert [part["type"] for part in content if part["type"] == "image"] == ["image"]


async def test_a_queued_message_starts_an_agent_that_is_not_running(conversation: SessionClient) -> None:
    await conversation.run_turn("[[chunk here]]")
    await conversation.prompt("[[exit code=3]]")
    await conversation.wait_for_event("worker_failed")
    await conversation.prompt("x", expect=409)
    item = await Queue(conversation).add("[[chunk back]]")
    prompt = await conversation.wait_for_event("user_prompt", promptId=item["id"])
    await conversation.wait_for_event("turn_end", after=prompt["seq"])
    assert ((await conversation.worker())["run"], await conversation.agent_text()) == (2, "hereback")


# Permissions from two devices


async def test_a_permission_shows_its_tool_call_and_is_answered_once_from_two_devices(
    unlimited_server: Server,
) -> None:
    params = {
        "toolCall": DECEPTIVE_CALL,
        "options": [{"optionId": "yes", "name": "OK", "kind": "allow_once"}],
    }
    ask = {"do": "ask", "method": "session/request_permission", "params": params, "wait": False}
    update = {
        "do": "tool_update",
        "toolCallId": DECEPTIVE_CALL["toolCallId"],
        "rawInput": {"command": ["ls"]},
    }
    journal = await define_scripted(
        unlimited_server, "sly", {"prompts": [[ask, update, {"do": "wait_cancel"}]]}
    )
    conversation = await SessionClient.begin(unlimited_server, "sly")
    await conversation.prompt("go")
    # A later update of the tool call does not change the permission.
    await conversation.wait_for_event("tool_call_update")
    permission = await conversation.open_permission()
    assert permission["toolCall"] == DECEPTIVE_CALL
    path, body = f"{conversation.path}/permissions/{permission['id']}", {"optionId": "yes"}
    devices = [await new_token_headers(unlimited_server, scope="operate") for _ in range(2)]
    answers = await asyncio.gather(
        *(unlimited_server.http.post(path, json=body, headers=device) for device in devices for _ in range(2))
    )
    assert sorted(answer.status_code for answer in answers) == [204, 409, 409, 409]
    await unlimited_server.call("POST", f"{conversation.path}/cancel", 204)
    await conversation.wait_for_event("turn_end", stopReason="cancelled")
    late = await unlimited_server.http.post(path, json=body, headers=devices[0])
    assert (late.status_code, late.json()["error"]) == (409, "conflict")
    states = [each["data"] for each in await conversation.events() if each["type"] == "permission"]
    assert [(state["status"], state["toolCall"]) for state in states] == [
        ("pending", DECEPTIVE_CALL),
        ("selected", DECEPTIVE_CALL),
    ]
    received = [message_of(record) for record in read_journal(journal) if record["dir"] == "in"]
    outcomes = [
        message["result"]["outcome"] for message in received if "outcome" in (message.get("result") or {})
    ]
    assert outcomes == [{"outcome": "selected", "optionId": "yes"}]


async def test_an_answer_to_a_permission_after_its_turn_is_refused(conversation: SessionClient) -> None:
    await conversation.prompt("[[permission]]")
    permission = await conversation.open_permission()
    await conversation.server.call("POST", f"{conversation.path}/cancel", 204)
    await conversation.wait_for_event("turn_end", stopReason="cancelled")
    path = f"{conversation.path}/permissions/{permission['id']}"
    await conversation.server.call("POST", path, 409, json={"optionId": "yes"})
