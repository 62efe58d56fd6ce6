"""The inbox of everything that waits for a user in all sessions; rules and notifications."""

import asyncio
import json
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from bullpen.client import Client
from support.server import Server
from support.session_client import SessionClient, define_scripted
from support.tui_session_client import FAST_SCREEN, TuiSessionClient, define_tui

OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


async def items(server: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await server.call("GET", "/api/inbox"))["items"]
    return found


async def kinds(server: Server) -> list[str]:
    return [item["kind"] for item in await items(server)]


async def wait_until_equal(look: Callable[[], Awaitable[Any]], wanted: Any) -> None:
    current = None
    try:
        async with asyncio.timeout(30):
            while (current := await look()) != wanted:
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"{current} never became {wanted}") from None


@pytest.fixture
async def journal(server: Server) -> Path:
    return await define_scripted(server)


@pytest.mark.usefixtures("journal")
async def test_items_of_all_sessions_are_listed_the_most_urgent_first(server: Server) -> None:
    done, asking, wondering, failing = [
        await SessionClient.begin(server, title=f"session {n}") for n in range(4)
    ]
    await done.run_turn("[[chunk hello]]")
    await asking.prompt("[[permission]]")
    await wondering.prompt("[[question]]")
    await failing.run_turn("[[chunk first]]")
    await failing.prompt("[[exit 3]]")
    await wait_until_equal(lambda: kinds(server), ["permission", "question", "failed", "finished"])

    permission, question, failed, finished = await items(server)
    assert (permission["sessionTitle"], permission["toolCall"]["kind"]) == ("session 1", "execute")
    assert (question["text"], question["form"]["required"]) == ("who?", ["name"])
    assert failed["sessionId"] == failing.id
    assert finished["sessionId"] == done.id
    assert (await done.events())[finished["seq"] - 1]["type"] == "turn_end"

    path = f"{asking.path}/permissions/{permission['id']}"
    await server.call("POST", path, 204, json={"optionId": "yes"})
    path = f"{wondering.path}/questions/{question['id']}"
    await server.call("POST", path, 204, json={"action": "decline"})
    await wait_until_equal(lambda: kinds(server), ["failed", "finished", "finished", "finished"])


@pytest.mark.usefixtures("journal")
async def test_a_turn_that_ended_in_an_error_is_a_failure_with_its_reason(server: Server) -> None:
    conversation = await SessionClient.begin(server)
    await conversation.run_turn("[[error text='the model is overloaded']]")
    (failed,) = await items(server)
    reason = "the turn failed: the model is overloaded"
    assert (failed["kind"], failed["text"]) == ("failed", reason)
    worker = await conversation.worker()
    assert (worker["state"], worker["activity"], worker["activityWhy"]) == ("active", "idle", reason)
    await conversation.run_turn("[[chunk better]]")
    assert await kinds(server) == ["finished"]
    assert (await conversation.worker())["activityWhy"] == "has finished its turn"


@pytest.mark.usefixtures("journal")
async def test_a_seen_item_is_removed_and_stays_removed_after_a_kill(server: Server) -> None:
    conversations = [await SessionClient.begin(server) for _ in range(2)]
    ends = [await conversation.run_turn("[[chunk hello]]") for conversation in conversations]
    await server.call("POST", f"{conversations[0].path}/seen", 204, json={"seq": ends[0]["seq"] - 1})
    assert len(await items(server)) == 2
    await server.call("POST", f"{conversations[0].path}/seen", 204, json={"seq": ends[0]["seq"]})
    await server.restart()
    assert [item["sessionId"] for item in await items(server)] == [conversations[1].id]
    await server.call("POST", f"{conversations[1].path}/seen", 204)
    assert await items(server) == []
    await server.call("POST", "/api/sessions/unknown/seen", 404)


@pytest.mark.usefixtures("journal")
async def test_a_new_turn_an_end_and_a_purge_remove_a_finished_item(server: Server) -> None:
    conversation = await SessionClient.begin(server)
    await conversation.run_turn("[[chunk hello]]")
    assert await kinds(server) == ["finished"]
    await conversation.prompt("[[wait_cancel]]")
    await wait_until_equal(lambda: kinds(server), [])
    await server.call("POST", f"{conversation.path}/cancel", 204)
    await conversation.wait_for_event("turn_end", stopReason="cancelled")
    assert await kinds(server) == []
    await conversation.run_turn("[[chunk more]]")
    assert await kinds(server) == ["finished"]
    await server.call("DELETE", conversation.path, params={"purge": True})
    assert await items(server) == []


@pytest.mark.intervals(**FAST_SCREEN)
async def test_finished_work_that_was_typed_into_a_terminal_is_in_the_inbox(server: Server) -> None:
    """Also after a kill. Work of an agent at its start, without input, is not in the inbox."""
    await define_tui(server)
    conversation = await TuiSessionClient.begin(server)
    assert await kinds(server) == []
    await conversation.type("[[work key]]\r")
    working = await conversation.wait_for_activity("active")
    assert working["data"]["byHand"] is True
    await server.kill()
    await server.start()
    await conversation.type("x", n=2)
    done = await conversation.wait_for_activity("idle", after=working["seq"])
    await wait_until_equal(lambda: kinds(server), ["finished"])
    assert (await items(server))[0]["seq"] == done["seq"]

    await conversation.type("[[work key]]\r", n=3)
    await conversation.wait_for_activity("active", after=done["seq"])
    await wait_until_equal(lambda: kinds(server), [])
    await conversation.type("x", n=4)
    await wait_until_equal(lambda: kinds(server), ["finished"])
    end = await conversation.run_turn("[[work 0.2]]")  # this work has a turn, so its end is a `turn_end`
    await wait_until_equal(lambda: kinds(server), ["finished"])
    assert (await items(server))[0]["seq"] == end["seq"]


@pytest.mark.usefixtures("journal")
async def test_the_dashboard_shows_every_change_of_the_inbox(server: Server) -> None:
    conversation = await SessionClient.begin(server)
    async with server.socket("/ws/dashboard") as ws:

        async def until(*wanted: str) -> None:
            async with asyncio.timeout(30):
                while True:
                    message = json.loads(await ws.recv())
                    if message["type"] == "inbox" and [item["kind"] for item in message["items"]] == [
                        *wanted
                    ]:
                        return

        await until()
        await conversation.prompt("[[permission]]")
        await until("permission")
        permission = await conversation.open_permission()
        path = f"{conversation.path}/permissions/{permission['id']}"
        await server.call("POST", path, 204, json={"optionId": "yes"})
        await until("finished")
        await server.call("POST", f"{conversation.path}/seen", 204)
        await until()


def permission_script(**call: Any) -> dict[str, Any]:
    """Return a script that asks for a permission at each prompt."""
    params = {"toolCall": {"toolCallId": "c1", "title": "look", **call}, "options": OPTIONS}
    return {"prompts": [[{"do": "ask", "method": "session/request_permission", "params": params}]]}


async def selected_answer(conversation: SessionClient) -> dict[str, Any]:
    event = await conversation.wait_for_event("permission", status="selected")
    data: dict[str, Any] = event["data"]
    return data


READ_RULE = {"name": "reading", "agentId": "reader", "kind": "read", "answer": "allow"}


async def test_a_rule_answers_a_permission_and_the_answer_names_the_rule(server: Server) -> None:
    journal = await define_scripted(server, "reader", permission_script(kind="read"))
    added = await server.call("POST", "/api/rules", 201, json=READ_RULE)
    assert added == READ_RULE | {"path": None, "command": None, "added": True}
    await server.restart()
    conversation = await SessionClient.begin(server, "reader")
    await conversation.run_turn("read it")
    assert (await selected_answer(conversation))["by"] == "rule reading"
    assert [
        each["data"]["status"] for each in await conversation.events() if each["type"] == "permission"
    ] == [
        "pending",
        "selected",
    ]
    assert '"selected"' in journal.read_text().replace("\\", "")


@pytest.mark.parametrize("kind", ["read_and_delete", "read\u200b", "teleport", None])
async def test_a_permission_of_a_kind_that_only_resembles_the_rule_asks_the_user(
    server: Server, kind: str | None
) -> None:
    await define_scripted(server, "reader", permission_script(**({} if kind is None else {"kind": kind})))
    await server.call("POST", "/api/rules", 201, json=READ_RULE)
    conversation = await SessionClient.begin(server, "reader")
    await conversation.prompt("read it")
    permission = await conversation.open_permission()
    path = f"{conversation.path}/permissions/{permission['id']}"
    await server.call("POST", path, 204, json={"optionId": "no"})
    assert (await selected_answer(conversation))["by"] == "owner"


async def test_a_permission_that_only_names_an_announced_call_asks_the_user_and_shows_the_call(
    server: Server,
) -> None:
    announced = {"do": "tool", "toolCallId": "c1", "title": "look", "kind": "read", "status": "pending"}
    params = {"toolCall": {"toolCallId": "c1"}, "options": OPTIONS}
    ask = {"do": "ask", "method": "session/request_permission", "params": params}
    await define_scripted(server, "reader", {"prompts": [[announced, ask]]})
    await server.call("POST", "/api/rules", 201, json=READ_RULE)
    conversation = await SessionClient.begin(server, "reader")
    await conversation.prompt("read it")
    permission = await conversation.open_permission()
    assert permission["toolCall"]["kind"] == "read"
    await server.restart()
    path = f"{conversation.path}/permissions/{permission['id']}"
    await server.call("POST", path, 204, json={"optionId": "no"})
    assert (await selected_answer(conversation))["by"] == "owner"


async def test_a_new_rule_answers_a_permission_that_is_already_open(server: Server) -> None:
    await define_scripted(server, "reader", permission_script(kind="read"))
    conversation = await SessionClient.begin(server, "reader")
    await conversation.prompt("read it")
    await conversation.open_permission()
    await server.call("POST", "/api/rules", 201, json=READ_RULE | {"answer": "reject"})
    data = await selected_answer(conversation)
    assert (data["optionId"], data["by"]) == ("no", "rule reading")


async def test_rules_of_the_settings_come_first_and_are_removed_only_in_the_settings(server: Server) -> None:
    server.set(BULLPEN_RULES=json.dumps([READ_RULE]))
    await server.restart()
    await server.call("POST", "/api/rules", 409, json=READ_RULE)
    await server.call("POST", "/api/rules", 201, json=READ_RULE | {"name": "more"})
    listed = (await server.call("GET", "/api/rules"))["rules"]
    assert [(rule["name"], rule["added"]) for rule in listed] == [("reading", False), ("more", True)]
    await server.call("DELETE", "/api/rules/reading", 409)
    await server.call("DELETE", "/api/rules/more", 204)
    await server.call("DELETE", "/api/rules/more", 404)
    await server.call("POST", "/api/rules", 400, json=READ_RULE | {"name": "x", "kind": "other"})


class NotificationReceiver:
    """A webhook on loopback, and a command that writes its arguments to a file."""

    def __init__(self, directory: Path) -> None:
        self.notifications: list[dict[str, Any]] = []
        self.file = directory / "arguments"
        self.file.touch()
        self.url = ""

    @property
    def command_calls(self) -> list[str]:
        return self.file.read_text().splitlines()

    @asynccontextmanager
    async def open(self) -> AsyncIterator["NotificationReceiver"]:
        async with await asyncio.start_server(self._take, "127.0.0.1", 0) as listening:
            self.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/hook"
            yield self

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length:")[1].split()[0])
        self.notifications.append(json.loads(await reader.readexactly(length)))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()

    def settings(self, **more: str) -> dict[str, str]:
        write = f"import sys; open({str(self.file)!r}, 'a').write('|'.join(sys.argv[1:]) + '\\n')"
        command = shlex.join([sys.executable, "-c", write])
        return {
            "BULLPEN_NOTIFY_WEBHOOK": self.url,
            "BULLPEN_NOTIFY_COMMAND": command,
            "BULLPEN_NOTIFY_AFTER": "0",
            **more,
        }


async def _counts(receiver: NotificationReceiver) -> tuple[int, int]:
    return len(receiver.notifications), len(receiver.command_calls)


async def test_a_user_is_notified_by_webhook_and_command(server: Server, tmp_path: Path) -> None:
    async with NotificationReceiver(tmp_path).open() as receiver:
        server.set(**receiver.settings())
        await server.restart()
        await define_scripted(server)
        conversation = await SessionClient.begin(server, title="--urgent")
        await conversation.prompt("[[permission]]")
        await wait_until_equal(lambda: _counts(receiver), (1, 1))
        (notification,) = receiver.notifications
        assert (notification["kind"], notification["sessionId"], notification["title"]) == (
            "permission",
            conversation.id,
            "scripted asks for permission",
        )
        title, text = receiver.command_calls[0].split("|")
        assert (title, text) == ("Bullpen: scripted asks for permission", "“--urgent: something”")


async def look(ws: ClientConnection, visible: bool) -> None:
    """Report whether the page is visible, and wait until the server has read the message."""
    await ws.send(json.dumps({"type": "looking", "visible": visible}))
    await ws.send(json.dumps({"type": "subscribe"}))
    async with asyncio.timeout(30):
        while json.loads(await ws.recv())["type"] != "snapshot":
            pass


async def test_one_notification_a_minute_none_for_a_visible_session_but_permissions_always(
    server: Server, tmp_path: Path
) -> None:
    async with NotificationReceiver(tmp_path).open() as receiver:
        server.set(**receiver.settings())
        await server.restart()
        await define_scripted(server)
        watched, other = await SessionClient.begin(server), await SessionClient.begin(server)
        async with server.socket(f"/ws/session/{watched.id}") as ws:
            await look(ws, True)
            await watched.run_turn("[[chunk seen]]")  # the session is visible: no notification
            await watched.prompt("[[permission]]")  # a permission is always notified
            await wait_until_equal(lambda: _counts(receiver), (1, 1))
        await other.run_turn("[[chunk one]]")
        await wait_until_equal(lambda: _counts(receiver), (2, 2))
        await other.run_turn("[[chunk two]]")  # within a minute of the last one: no notification
        await other.prompt("[[permission]]")
        await wait_until_equal(lambda: _counts(receiver), (3, 3))
        assert [each["kind"] for each in receiver.notifications] == ["permission", "finished", "permission"]


async def test_an_attentive_viewer_of_the_client_library_suppresses_notifications(
    server: Server, tmp_path: Path
) -> None:
    async with NotificationReceiver(tmp_path).open() as receiver:
        server.set(**receiver.settings(BULLPEN_NOTIFY_PAUSE="0"))
        await server.restart()
        await define_scripted(server)
        conversation, other = await SessionClient.begin(server), await SessionClient.begin(server)
        async with Client(server.url, server.token) as client:
            async with aclosing(client.follow(conversation.id, looking=True)) as events:
                await anext(events)
                await conversation.run_turn("[[chunk one]]")
                await other.run_turn("[[chunk elsewhere]]")
                await wait_until_equal(lambda: _counts(receiver), (1, 1))
            assert [each["sessionId"] for each in receiver.notifications] == [other.id]


async def test_a_viewer_that_is_not_attentive_does_not_suppress_notifications(
    server: Server, tmp_path: Path
) -> None:
    async with NotificationReceiver(tmp_path).open() as receiver:
        server.set(**receiver.settings(BULLPEN_NOTIFY_PAUSE="0"))
        await server.restart()
        await define_scripted(server)
        conversation, other = await SessionClient.begin(server), await SessionClient.begin(server)
        async with server.socket(f"/ws/session/{conversation.id}") as ws:
            await conversation.run_turn("[[chunk one]]")  # the viewer has not reported that it is visible
            await wait_until_equal(lambda: _counts(receiver), (1, 1))
            await look(ws, True)
            await conversation.run_turn("[[chunk two]]")
            await other.run_turn("[[chunk elsewhere]]")
            await wait_until_equal(lambda: _counts(receiver), (2, 2))
            assert receiver.notifications[1]["sessionId"] == other.id
            await look(ws, False)  # the tab is hidden
            await conversation.run_turn("[[chunk three]]")
            await wait_until_equal(lambda: _counts(receiver), (3, 3))
            await look(ws, True)
        await conversation.run_turn("[[chunk four]]")  # the viewer has disconnected
        await wait_until_equal(lambda: _counts(receiver), (4, 4))


async def test_an_attentive_guest_does_not_suppress_notifications(server: Server, tmp_path: Path) -> None:
    async with NotificationReceiver(tmp_path).open() as receiver:
        server.set(**receiver.settings())
        await server.restart()
        await define_scripted(server)
        conversation = await SessionClient.begin(server)
        share = await server.call("POST", f"{conversation.path}/share", 201, json={})
        as_guest = {"Authorization": f"Bearer {share['token']}"}
        async with server.socket(f"/ws/session/{conversation.id}", headers=as_guest) as ws:
            await look(ws, True)
            await conversation.run_turn("[[chunk done]]")
            await wait_until_equal(lambda: _counts(receiver), (1, 1))


async def test_a_notification_during_the_pause_is_sent_after_the_pause(
    server: Server, tmp_path: Path
) -> None:
    async with NotificationReceiver(tmp_path).open() as receiver:
        server.set(**receiver.settings(BULLPEN_NOTIFY_PAUSE="2"))
        await server.restart()
        await define_scripted(server)
        conversation = await SessionClient.begin(server)
        await conversation.run_turn("[[chunk one]]")
        await wait_until_equal(lambda: _counts(receiver), (1, 1))
        await conversation.run_turn("[[chunk two]]")
        await wait_until_equal(lambda: _counts(receiver), (2, 2))
        assert [each["kind"] for each in receiver.notifications] == ["finished", "finished"]


async def test_a_permission_answered_within_the_delay_causes_no_notification(
    server: Server, tmp_path: Path
) -> None:
    async with NotificationReceiver(tmp_path).open() as receiver:
        server.set(**receiver.settings(BULLPEN_NOTIFY_AFTER="5"))
        await server.restart()
        await define_scripted(server)
        quick, slow = await SessionClient.begin(server), await SessionClient.begin(server)
        await quick.prompt("[[permission]]")
        permission = await quick.open_permission()
        path = f"{quick.path}/permissions/{permission['id']}"
        await server.call("POST", path, 204, json={"optionId": "yes"})
        await quick.wait_for_event("turn_end")
        await server.call("POST", f"{quick.path}/seen", 204)
        await slow.prompt("[[permission]]")
        await wait_until_equal(lambda: _counts(receiver), (1, 1))
        assert receiver.notifications[0]["sessionId"] == slow.id
