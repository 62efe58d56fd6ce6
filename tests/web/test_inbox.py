"""B4: one inbox of everything that waits for a person, over all sessions; rules and notifications."""

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
from support.tui_session_client import TuiSessionClient, define_tui

OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


async def items(server: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await server.call("GET", "/api/inbox"))["items"]
    return found


async def kinds(server: Server) -> list[str]:
    return [item["kind"] for item in await items(server)]


async def eventually(look: Callable[[], Awaitable[Any]], wanted: Any) -> None:
    seen = None
    try:
        async with asyncio.timeout(30):
            while (seen := await look()) != wanted:
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"{seen} never became {wanted}") from None


@pytest.fixture
async def journal(server: Server) -> Path:
    return await define_scripted(server)


@pytest.mark.usefixtures("journal")
async def test_b4_what_waits_in_any_session_is_there_the_most_urgent_first(server: Server) -> None:
    done, asking, wondering, failing = [
        await SessionClient.begin(server, title=f"talk {n}") for n in range(4)
    ]
    await done.run_turn("[[chunk hello]]")
    await asking.prompt("[[permission]]")
    await wondering.prompt("[[question]]")
    await failing.run_turn("[[chunk first]]")
    await failing.prompt("[[exit 3]]")
    await eventually(lambda: kinds(server), ["permission", "question", "failed", "finished"])

    permission, question, failed, finished = await items(server)
    assert (permission["sessionTitle"], permission["toolCall"]["kind"]) == ("talk 1", "execute")
    assert (question["text"], question["form"]["required"]) == ("who?", ["name"])
    assert failed["sessionId"] == failing.id
    assert finished["sessionId"] == done.id
    assert (await done.events())[finished["seq"] - 1]["type"] == "turn_end"

    path = f"{asking.path}/permissions/{permission['id']}"
    await server.call("POST", path, 204, json={"optionId": "yes"})
    path = f"{wondering.path}/questions/{question['id']}"
    await server.call("POST", path, 204, json={"action": "decline"})
    await eventually(lambda: kinds(server), ["failed", "finished", "finished", "finished"])


@pytest.mark.usefixtures("journal")
async def test_a_turn_that_ended_in_an_error_has_failed_and_says_why(server: Server) -> None:
    talk = await SessionClient.begin(server)
    await talk.run_turn("[[error text='the model is overloaded']]")
    (failed,) = await items(server)
    why = "the turn failed: the model is overloaded"
    assert (failed["kind"], failed["text"]) == ("failed", why)
    worker = await talk.worker()
    assert (worker["state"], worker["activity"], worker["activityWhy"]) == ("active", "idle", why)
    await talk.run_turn("[[chunk better]]")
    assert await kinds(server) == ["finished"]
    assert (await talk.worker())["activityWhy"] == "the turn is over"


@pytest.mark.usefixtures("journal")
async def test_what_was_seen_is_gone_and_stays_gone_over_a_kill(server: Server) -> None:
    talks = [await SessionClient.begin(server) for _ in range(2)]
    ends = [await talk.run_turn("[[chunk hello]]") for talk in talks]
    await server.call("POST", f"{talks[0].path}/seen", 204, json={"seq": ends[0]["seq"] - 1})
    assert len(await items(server)) == 2
    await server.call("POST", f"{talks[0].path}/seen", 204, json={"seq": ends[0]["seq"]})
    await server.restart()
    assert [item["sessionId"] for item in await items(server)] == [talks[1].id]
    await server.call("POST", f"{talks[1].path}/seen", 204)
    assert await items(server) == []
    await server.call("POST", "/api/sessions/nobody/seen", 404)


@pytest.mark.usefixtures("journal")
async def test_a_new_turn_an_end_and_a_purge_take_it_away(server: Server) -> None:
    talk = await SessionClient.begin(server)
    await talk.run_turn("[[chunk hello]]")
    assert await kinds(server) == ["finished"]
    await talk.prompt("[[wait_cancel]]")
    await eventually(lambda: kinds(server), [])
    await server.call("POST", f"{talk.path}/cancel", 204)
    await talk.wait_for_event("turn_end", stopReason="cancelled")
    assert await kinds(server) == []
    await talk.run_turn("[[chunk more]]")
    assert await kinds(server) == ["finished"]
    await server.call("DELETE", talk.path, params={"purge": True})
    assert await items(server) == []


async def test_work_that_was_typed_into_a_terminal_waits_to_be_seen_when_it_is_done(server: Server) -> None:
    """Over a kill too; what an agent does by itself when it starts is nobody's."""
    await define_tui(server)
    talk = await TuiSessionClient.begin(server)
    assert await kinds(server) == []
    await talk.type("[[work 4]]\r")
    working = await talk.wait_for_activity("active")
    assert working["data"]["byHand"] is True
    await server.kill()
    await server.start()
    done = await talk.wait_for_activity("idle", after=working["seq"])
    await eventually(lambda: kinds(server), ["finished"])
    assert (await items(server))[0]["seq"] == done["seq"]

    await talk.type("[[work 2]]\r", n=2)
    await talk.wait_for_activity("active", after=done["seq"])
    await eventually(lambda: kinds(server), [])
    await eventually(lambda: kinds(server), ["finished"])
    end = await talk.run_turn("[[work 0.2]]")  # it has the turn of a prompt, and its end
    await eventually(lambda: kinds(server), ["finished"])
    assert (await items(server))[0]["seq"] == end["seq"]


@pytest.mark.usefixtures("journal")
async def test_the_dashboard_tells_every_change_of_the_inbox(server: Server) -> None:
    talk = await SessionClient.begin(server)
    async with server.socket("/ws/dashboard") as ws:

        async def until(*wanted: str) -> None:
            async with asyncio.timeout(30):
                while True:
                    news = json.loads(await ws.recv())
                    if news["type"] == "inbox" and [item["kind"] for item in news["items"]] == [*wanted]:
                        return

        await until()
        await talk.prompt("[[permission]]")
        await until("permission")
        permission = await talk.open_permission()
        path = f"{talk.path}/permissions/{permission['id']}"
        await server.call("POST", path, 204, json={"optionId": "yes"})
        await until("finished")
        await server.call("POST", f"{talk.path}/seen", 204)
        await until()


def asking(**call: Any) -> dict[str, Any]:
    """A script whose every prompt asks leave for a call."""
    params = {"toolCall": {"toolCallId": "c1", "title": "look", **call}, "options": OPTIONS}
    return {"prompts": [[{"do": "ask", "method": "session/request_permission", "params": params}]]}


async def answered(talk: SessionClient) -> dict[str, Any]:
    event = await talk.wait_for_event("permission", status="selected")
    data: dict[str, Any] = event["data"]
    return data


READING = {"name": "reading", "agentId": "reader", "kind": "read", "answer": "allow"}


async def test_s29_a_rule_answers_and_the_answer_names_it(server: Server) -> None:
    journal = await define_scripted(server, "reader", asking(kind="read"))
    added = await server.call("POST", "/api/rules", 201, json=READING)
    assert added == READING | {"path": None, "command": None, "added": True}
    await server.restart()
    talk = await SessionClient.begin(server, "reader")
    await talk.run_turn("read it")
    assert (await answered(talk))["by"] == "rule reading"
    assert [each["data"]["status"] for each in await talk.events() if each["type"] == "permission"] == [
        "pending",
        "selected",
    ]
    assert '"selected"' in journal.read_text().replace("\\", "")


@pytest.mark.parametrize("kind", ["read_and_delete", "read\u200b", "teleport", None])
async def test_s29_what_only_looks_like_it_asks_a_person(server: Server, kind: str | None) -> None:
    await define_scripted(server, "reader", asking(**({} if kind is None else {"kind": kind})))
    await server.call("POST", "/api/rules", 201, json=READING)
    talk = await SessionClient.begin(server, "reader")
    await talk.prompt("read it")
    permission = await talk.open_permission()
    path = f"{talk.path}/permissions/{permission['id']}"
    await server.call("POST", path, 204, json={"optionId": "no"})
    assert (await answered(talk))["by"] == "owner"


async def test_s29_a_question_that_only_names_a_call_asks_a_person_and_shows_it(server: Server) -> None:
    announced = {"do": "tool", "toolCallId": "c1", "title": "look", "kind": "read", "status": "pending"}
    params = {"toolCall": {"toolCallId": "c1"}, "options": OPTIONS}
    ask = {"do": "ask", "method": "session/request_permission", "params": params}
    await define_scripted(server, "reader", {"prompts": [[announced, ask]]})
    await server.call("POST", "/api/rules", 201, json=READING)
    talk = await SessionClient.begin(server, "reader")
    await talk.prompt("read it")
    permission = await talk.open_permission()
    assert permission["toolCall"]["kind"] == "read"
    await server.restart()
    path = f"{talk.path}/permissions/{permission['id']}"
    await server.call("POST", path, 204, json={"optionId": "no"})
    assert (await answered(talk))["by"] == "owner"


async def test_a_rule_answers_what_was_asked_before_it_was_made(server: Server) -> None:
    await define_scripted(server, "reader", asking(kind="read"))
    talk = await SessionClient.begin(server, "reader")
    await talk.prompt("read it")
    await talk.open_permission()
    await server.call("POST", "/api/rules", 201, json=READING | {"answer": "reject"})
    data = await answered(talk)
    assert (data["optionId"], data["by"]) == ("no", "rule reading")


async def test_rules_of_the_settings_are_tried_first_and_only_removed_there(server: Server) -> None:
    server.set(BULLPEN_RULES=json.dumps([READING]))
    await server.restart()
    await server.call("POST", "/api/rules", 409, json=READING)
    await server.call("POST", "/api/rules", 201, json=READING | {"name": "more"})
    listed = (await server.call("GET", "/api/rules"))["rules"]
    assert [(rule["name"], rule["added"]) for rule in listed] == [("reading", False), ("more", True)]
    await server.call("DELETE", "/api/rules/reading", 409)
    await server.call("DELETE", "/api/rules/more", 204)
    await server.call("DELETE", "/api/rules/more", 404)
    await server.call("POST", "/api/rules", 400, json=READING | {"name": "x", "kind": "other"})


class Hook:
    """A webhook of the loopback, and a command that writes down what it is told."""

    def __init__(self, directory: Path) -> None:
        self.told: list[dict[str, Any]] = []
        self.file = directory / "told"
        self.file.touch()
        self.url = ""

    @property
    def commanded(self) -> list[str]:
        return self.file.read_text().splitlines()

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Hook"]:
        async with await asyncio.start_server(self._take, "127.0.0.1", 0) as listening:
            self.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/hook"
            yield self

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length:")[1].split()[0])
        self.told.append(json.loads(await reader.readexactly(length)))
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


async def _count(hook: Hook) -> tuple[int, int]:
    return len(hook.told), len(hook.commanded)


async def test_a_person_is_told_by_webhook_and_command(server: Server, tmp_path: Path) -> None:
    async with Hook(tmp_path).open() as hook:
        server.set(**hook.settings())
        await server.restart()
        await define_scripted(server)
        talk = await SessionClient.begin(server, title="--urgent")
        await talk.prompt("[[permission]]")
        await eventually(lambda: _count(hook), (1, 1))
        (told,) = hook.told
        assert (told["kind"], told["sessionId"], told["title"]) == (
            "permission",
            talk.id,
            "scripted asks for permission",
        )
        title, text = hook.commanded[0].split("|")
        assert (title, text) == ("Bullpen: scripted asks for permission", "“--urgent: something”")


async def look(ws: ClientConnection, visible: bool) -> None:
    """Says so, and waits until it is known: a socket takes one message after the other."""
    await ws.send(json.dumps({"type": "looking", "visible": visible}))
    await ws.send(json.dumps({"type": "subscribe"}))
    async with asyncio.timeout(30):
        while json.loads(await ws.recv())["type"] != "snapshot":
            pass


async def test_one_notification_a_minute_and_none_on_screen_but_approvals_always(
    server: Server, tmp_path: Path
) -> None:
    async with Hook(tmp_path).open() as hook:
        server.set(**hook.settings())
        await server.restart()
        await define_scripted(server)
        watched, other = await SessionClient.begin(server), await SessionClient.begin(server)
        async with server.socket(f"/ws/session/{watched.id}") as ws:
            await look(ws, True)
            await watched.run_turn("[[chunk seen]]")  # on a screen: not told
            await watched.prompt("[[permission]]")  # but this is
            await eventually(lambda: _count(hook), (1, 1))
        await other.run_turn("[[chunk one]]")
        await eventually(lambda: _count(hook), (2, 2))
        await other.run_turn("[[chunk two]]")  # within the minute: not told
        await other.prompt("[[permission]]")
        await eventually(lambda: _count(hook), (3, 3))
        assert [told["kind"] for told in hook.told] == ["permission", "finished", "permission"]


async def test_who_reads_along_from_a_program_is_not_told(server: Server, tmp_path: Path) -> None:
    async with Hook(tmp_path).open() as hook:
        server.set(**hook.settings(BULLPEN_NOTIFY_PAUSE="0"))
        await server.restart()
        await define_scripted(server)
        talk, other = await SessionClient.begin(server), await SessionClient.begin(server)
        async with Client(server.url, server.token) as client:
            async with aclosing(client.follow(talk.id, looking=True)) as events:
                await anext(events)
                await talk.run_turn("[[chunk one]]")
                await other.run_turn("[[chunk elsewhere]]")
                await eventually(lambda: _count(hook), (1, 1))
            assert [told["sessionId"] for told in hook.told] == [other.id]


async def test_who_is_connected_and_does_not_look_is_told(server: Server, tmp_path: Path) -> None:
    async with Hook(tmp_path).open() as hook:
        server.set(**hook.settings(BULLPEN_NOTIFY_PAUSE="0"))
        await server.restart()
        await define_scripted(server)
        talk, other = await SessionClient.begin(server), await SessionClient.begin(server)
        async with server.socket(f"/ws/session/{talk.id}") as ws:
            await talk.run_turn("[[chunk one]]")  # a program, or a page of old, that never said it looks
            await eventually(lambda: _count(hook), (1, 1))
            await look(ws, True)
            await talk.run_turn("[[chunk two]]")
            await other.run_turn("[[chunk elsewhere]]")
            await eventually(lambda: _count(hook), (2, 2))
            assert hook.told[1]["sessionId"] == other.id
            await look(ws, False)  # a tab that is hidden now
            await talk.run_turn("[[chunk three]]")
            await eventually(lambda: _count(hook), (3, 3))
            await look(ws, True)
        await talk.run_turn("[[chunk four]]")  # who has left looks no more
        await eventually(lambda: _count(hook), (4, 4))


async def test_a_guest_who_looks_keeps_nothing_from_the_others(server: Server, tmp_path: Path) -> None:
    async with Hook(tmp_path).open() as hook:
        server.set(**hook.settings())
        await server.restart()
        await define_scripted(server)
        talk = await SessionClient.begin(server)
        share = await server.call("POST", f"{talk.path}/share", 201, json={})
        as_guest = {"Authorization": f"Bearer {share['token']}"}
        async with server.socket(f"/ws/session/{talk.id}", headers=as_guest) as ws:
            await look(ws, True)
            await talk.run_turn("[[chunk done]]")
            await eventually(lambda: _count(hook), (1, 1))


async def test_what_falls_into_the_pause_is_told_after_it(server: Server, tmp_path: Path) -> None:
    async with Hook(tmp_path).open() as hook:
        server.set(**hook.settings(BULLPEN_NOTIFY_PAUSE="2"))
        await server.restart()
        await define_scripted(server)
        talk = await SessionClient.begin(server)
        await talk.run_turn("[[chunk one]]")
        await eventually(lambda: _count(hook), (1, 1))
        await talk.run_turn("[[chunk two]]")
        await eventually(lambda: _count(hook), (2, 2))
        assert [told["kind"] for told in hook.told] == ["finished", "finished"]


async def test_what_is_answered_in_time_is_not_told(server: Server, tmp_path: Path) -> None:
    async with Hook(tmp_path).open() as hook:
        server.set(**hook.settings(BULLPEN_NOTIFY_AFTER="5"))
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
        await eventually(lambda: _count(hook), (1, 1))
        assert hook.told[0]["sessionId"] == slow.id
