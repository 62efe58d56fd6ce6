"""Terminal agents: their activity is detected, and each prompt is typed exactly once."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from support.pictures import png
from support.server import Server
from support.session_client import SECONDS, define_scripted
from support.tui_session_client import FAST_SCREEN, SCREEN_PATTERNS, TuiSessionClient, define_tui, journal_of

pytestmark = pytest.mark.intervals(**FAST_SCREEN)


async def begin(server: Server, plain: bool = False, **more: Any) -> tuple[TuiSessionClient, Path]:
    journal = await define_tui(server, plain=plain, **more)
    return await TuiSessionClient.begin(server), journal


async def test_the_activity_of_a_terminal_agent_is_detected_on_its_screen(server: Server) -> None:
    talk, _ = await begin(server)
    await talk.prompt("[[work 0.8]] [[ask]] [[work key]]")
    asks = await talk.wait_for_activity("asking")
    assert "Allow this? (y/n)" in asks["data"]["why"]
    worker = await talk.worker()
    assert (worker["activity"], worker["activitySince"]) == ("asking", asks["timestamp"])
    await talk.type("y")
    await talk.wait_for_activity("active", after=asks["seq"])
    await talk.type("x", n=2)
    end = await talk.wait_for_event("turn_end", stopReason="end_turn")
    await talk.wait_for_activity("idle", after=end["seq"] - 1)
    changes = [e["data"] for e in await talk.events() if e["type"] == "worker_activity"]
    assert [each["activity"] for each in changes][-4:] == ["active", "asking", "active", "idle"]
    assert changes[-4]["why"] == "a prompt was sent"


async def test_acp_agents_terminal_agents_and_shells_are_workers_of_one_session(
    server: Server,
) -> None:
    talk, _ = await begin(server)
    await define_scripted(server)
    body = {"type": "agent", "agentId": "scripted", "role": "acp"}
    await server.call("POST", f"{talk.path}/workers", 201, json=body)
    await talk.wait_for_event("agent_session", how="new")
    shell = await server.new_terminal(talk.id, role="shell")
    for role, text in (("tui", "[[work 0.2]]"), ("acp", "[[chunk hello]]")):
        assert (await talk.run_turn(text, role=role))["role"] == role
    async with server.socket(f"/ws/session/{talk.id}/worker/{shell['id']}") as ws:
        await ws.send(json.dumps({"type": "input", "data": "exit 3\r"}))
        assert (await talk.wait_for_event("worker_exited", exitCode=3))["role"] == "shell"
    workers = (await server.call("GET", f"{talk.path}/workers"))["workers"]
    assert [(each["role"], each["state"]) for each in workers] == [
        ("tui", "active"),
        ("acp", "active"),
        ("shell", "exited"),
    ]
    assert len({tuple(each) for each in workers}) == 1  # all workers have the same fields
    for worker in workers:
        ended = await server.call("DELETE", f"{talk.path}/workers/{worker['id']}", 200)
        assert ended["state"] == "terminated"


async def test_the_activity_of_an_agent_without_screen_patterns_follows_its_output(server: Server) -> None:
    talk, _ = await begin(server, plain=True)
    assert (await talk.wait_for_activity("idle"))["data"]["why"] == "silent for 1 s"
    await talk.type("[[write key]]\r")
    writes = await talk.wait_for_activity("active")
    assert writes["data"]["why"] == "it writes"
    await talk.type("x", n=2)
    await talk.wait_for_activity("idle", after=writes["seq"])


async def test_a_bell_or_a_notification_makes_a_terminal_agent_asking_until_a_user_types(
    server: Server,
) -> None:
    talk, _ = await begin(server, plain=True)
    steps = (("bell", "it rang the bell"), ("notify All done", "it says “All done”"))
    for number, (step, why) in enumerate(steps, 1):
        before = (await talk.events())[-1]["seq"]
        await talk.prompt(f"[[{step}]]")
        asks = await talk.wait_for_activity("asking", after=before)
        assert asks["data"]["why"] == why
        await talk.type("x", n=number)
        await talk.wait_for_activity("idle", after=asks["seq"])


async def test_a_terminal_agent_can_report_its_activity_itself(server: Server) -> None:
    talk, journal = await begin(server)
    await talk.prompt("[[claim asking may I?]] [[work key]]")
    asks = await talk.wait_for_activity("asking")
    assert asks["data"]["why"] == "it says so: may I?"
    async with asyncio.timeout(SECONDS):
        while journal_of(journal, "claimed") != [204]:  # it notes the answer after the server has the claim
            await asyncio.sleep(0.01)
    await talk.type("y")
    working = await talk.wait_for_activity("active", after=asks["seq"])
    assert "esc to interrupt" in working["data"]["why"]
    await talk.type("x", n=2)
    await talk.wait_for_event("turn_end", stopReason="end_turn")


async def test_viewers_of_a_terminal_agent_receive_its_activity_and_viewers_of_a_shell_do_not(
    server: Server,
) -> None:
    talk, _ = await begin(server)
    shell = await server.new_terminal(talk.id)
    agent, *_ = (await server.call("GET", f"{talk.path}/workers"))["workers"]
    await talk.prompt("[[work 0.5]] [[ask]]")
    async with server.socket(f"/ws/session/{talk.id}/worker/{agent['id']}") as ws:
        async with asyncio.timeout(SECONDS):
            async for message in ws:
                frame = json.loads(message) if isinstance(message, str) else {}
                if frame.get("type") == "activity" and frame["state"] == "asking":
                    break
        assert "Allow this" in frame["why"]
    async with server.socket(f"/ws/session/{talk.id}/worker/{shell['id']}") as ws:
        await ws.send(json.dumps({"type": "input", "data": "printf 'Allow this? (y/n)\\a'; exit\r"}))
        types = []
        async with asyncio.timeout(SECONDS):
            async for message in ws:
                if isinstance(message, str):
                    types.append(json.loads(message)["type"])
                if types[-1:] == ["exit"]:
                    break
    assert "activity" not in types
    types = [e["type"] for e in await talk.events() if e["workerId"] == shell["id"]]
    assert types == ["worker_spawning", "worker_ready", "worker_exited"]


async def test_a_long_text_with_many_lines_and_control_characters_arrives_as_one_paste(
    server: Server,
) -> None:
    talk, journal = await begin(server)
    lines = [f"line {number} ☃ \tand more" for number in range(9000)]
    hostile = "\x1b[201~\rrm -rf /\r\x03\x04\x1b]0;x\x07\x9b31m"
    await talk.run_turn("\n".join([*lines, hostile, "end"]))
    (prompt,) = journal_of(journal, "prompt")
    assert prompt == "\n".join([*lines, "[201~\nrm -rf /\n]0;x31m", "end"])
    (recorded,) = [e["data"]["text"] for e in await talk.events() if e["type"] == "user_prompt"]
    assert recorded.endswith(hostile + "\nend")


async def test_a_prompt_is_submitted_when_it_has_been_drawn_and_its_turn_ends_after_that(
    server: Server,
) -> None:
    talk, journal = await begin(server, slow=True, signs={**SCREEN_PATTERNS, "silence": SECONDS})
    for text in ("first", "second"):
        end = await talk.run_turn(text)
        assert end["data"]["stopReason"] == "end_turn"
        assert journal_of(journal, "prompt")[-1] == text
    assert journal_of(journal, "prompt") == ["first", "second"]


async def test_silence_before_a_prompt_does_not_end_its_turn(server: Server) -> None:
    talk, journal = await begin(server, plain=True, signs={"silence": 2.0})
    await talk.run_turn("[[hush 0.5]] [[write 0.5]]")
    assert journal_of(journal, "done") == ["end"]


async def test_a_program_without_bracketed_paste_gets_its_own_key_for_a_new_line(server: Server) -> None:
    talk, journal = await begin(server, plain=True, keys={"newline": " / ", "echo": 0.2})
    await talk.run_turn("one\ntwo")
    assert journal_of(journal, "prompt") == ["one / two"]


async def test_an_image_of_a_prompt_is_stored_and_its_path_is_pasted(server: Server) -> None:
    talk, journal = await begin(server, keys={"image": "@{path}"})
    image = await server.call("POST", f"{talk.path}/images", 201, content=png())
    await talk.run_turn("look at this", imageIds=[image["id"]])
    (prompt,) = journal_of(journal, "prompt")
    text, _, path = prompt.partition(" @")
    assert text == "look at this"
    assert Path(path).read_bytes() == png()


async def test_an_image_sent_to_a_terminal_is_stored_and_its_path_is_typed_once(server: Server) -> None:
    talk, journal = await begin(server)
    worker = await talk.worker()
    frame = {"type": "image", "n": 1, "data": base64.b64encode(png()).decode(), "mimeType": "image/png"}
    async with server.socket(f"/ws/session/{talk.id}/worker/{worker['id']}?client=me") as ws:
        await ws.send(json.dumps(frame))
        await ws.send(json.dumps(frame))  # sent again with its number, it is typed once
        await ws.send(json.dumps({"type": "input", "n": 2, "data": "and this\r"}))
        async with asyncio.timeout(SECONDS):
            while not journal_of(journal, "prompt"):
                await asyncio.sleep(0.02)
    (prompt,) = journal_of(journal, "prompt")
    path, _, words = prompt.partition(" ")
    assert words == "and this"
    assert Path(path).read_bytes() == png()


async def test_a_prompt_to_a_busy_terminal_agent_is_sent_when_it_is_idle(server: Server) -> None:
    talk, journal = await begin(server)
    await talk.prompt("first [[work 1]] [[ask]]")
    second = await talk.prompt("second")
    assert second["queued"]
    await talk.wait_for_activity("asking")
    assert journal_of(journal, "prompt") == ["first [[work 1]] [[ask]]"]
    await talk.type("y")
    start = await talk.wait_for_event("turn_start", promptId=second["promptId"])
    await talk.wait_for_event("turn_end", after=start["seq"])
    assert journal_of(journal, "prompt") == ["first [[work 1]] [[ask]]", "second"]
    messages = (await server.call("GET", f"{talk.path}/messages"))["messages"]
    contents = [each["content"] for each in messages if each["role"] == "user"]
    assert [each["text"] if isinstance(each, dict) else each for each in contents] == [
        "first [[work 1]] [[ask]]",
        "second",
    ]


async def test_a_prompt_waits_until_a_starting_terminal_agent_is_idle(server: Server) -> None:
    journal = await define_tui(server)
    talk = TuiSessionClient(server, await server.new_session(agentId="tui"))
    prompted = await talk.prompt("early")
    assert prompted["queued"]
    start = await talk.wait_for_event("turn_start", promptId=prompted["promptId"])
    await talk.wait_for_event("turn_end", after=start["seq"])
    assert journal_of(journal, "prompt") == ["early"]


async def test_a_cancel_types_the_interrupt_key_and_nothing_when_the_agent_is_idle(server: Server) -> None:
    talk, journal = await begin(server)
    await server.call("POST", f"{talk.path}/cancel", 204)
    await talk.prompt("[[work 60]]")
    await talk.wait_for_event("notice_sent", method="submit")
    async with asyncio.timeout(SECONDS):
        while not journal_of(journal, "prompt"):
            await asyncio.sleep(0.02)
    await server.call("POST", f"{talk.path}/cancel", 204)
    await talk.wait_for_event("turn_end", stopReason="cancelled")
    assert journal_of(journal, "done") == ["interrupted"]
    keys = [e["data"]["method"] for e in await talk.events() if e["type"] == "notice_sent"]
    assert keys == ["paste", "submit", "session/cancel"]


async def test_a_restart_continues_the_conversation_or_starts_a_new_one(server: Server) -> None:
    talk, journal = await begin(server)
    await talk.run_turn("hello")
    await _restart(talk, continueConversation=True)
    await _restart(talk, continueConversation=False)
    first, again, anew = (arguments[2:] for arguments in journal_of(journal, "started"))
    assert again == ["again", *first]
    assert len(anew) == 1
    assert anew != first


async def test_a_restart_continues_the_conversation_of_an_agent_that_was_never_seen_idle(
    server: Server,
) -> None:
    signs = {"busy": SCREEN_PATTERNS["busy"], "silence": 3600.0}
    journal = await define_tui(server, signs=signs)
    talk = TuiSessionClient(server, await server.new_session(agentId="tui"))
    await talk.wait_for_event("worker_ready")
    await talk.wait_until_listening(journal)
    await talk.type("[[work 60]]\r")
    await talk.wait_for_activity("active")
    assert "idle" not in await talk.activities()
    await server.call("POST", f"{talk.path}/restart", 200, json={"continueConversation": True})
    async with asyncio.timeout(SECONDS):
        while len(journal_of(journal, "started")) < 2:
            await asyncio.sleep(0.02)
    first, again = (arguments[2:] for arguments in journal_of(journal, "started"))
    assert again == ["again", *first]


async def test_a_new_session_continues_the_last_conversation_of_a_terminal_agent_in_its_directory(
    server: Server,
) -> None:
    talk, journal = await begin(server)
    await talk.run_turn("hello")
    await server.call("DELETE", talk.path)
    await TuiSessionClient.begin(server, continueConversation=True)
    first, again = (arguments[2:] for arguments in journal_of(journal, "started"))
    assert again == ["again", *first]


async def test_an_agent_without_an_earlier_conversation_starts_a_new_one(server: Server) -> None:
    await define_tui(server)
    await TuiSessionClient.begin(server, continueConversation=True)
    (arguments,) = journal_of(server.home.parent / "tui.journal", "started")
    assert "again" not in arguments


async def test_a_terminal_agent_that_crashes_fails_and_its_session_stays_active(server: Server) -> None:
    talk, _ = await begin(server)
    await talk.prompt("[[exit 3]]")
    failed = await talk.wait_for_event("worker_failed")
    assert failed["data"]["exitCode"] == 3
    assert (await talk.wait_for_event("turn_end"))["data"]["stopReason"] == "error"
    assert (await server.call("GET", talk.path))["status"] == "active"


async def test_a_terminal_agent_that_is_not_installed_is_refused_with_its_install_command(
    server: Server,
) -> None:
    await define_tui(server, command=["no-such-agent"], install="summon it")
    body = {"locationPath": str(server.workspace), "agentId": "tui"}
    refused = await server.call("POST", "/api/sessions", 409, json=body)
    assert "summon it" in refused["message"]


async def test_the_mode_of_a_terminal_agent_cannot_be_set(server: Server) -> None:
    talk, journal = await begin(server)
    await talk.run_turn("hello")
    worker = await talk.worker()
    path = f"{talk.path}/workers/{worker['id']}/mode"
    await server.call("PUT", path, 409, json={"modeId": "plan"})
    assert journal_of(journal, "prompt") == ["hello"]


async def test_ending_a_terminal_agent_ends_its_program(server: Server) -> None:
    talk, _ = await begin(server)
    await talk.prompt("[[work 60]]")
    worker = await talk.worker()
    await server.call("DELETE", f"{talk.path}/workers/{worker['id']}", 200)
    assert not Path(f"/proc/{worker['pid']}").exists()


async def _restart(talk: TuiSessionClient, **body: Any) -> None:
    before = (await talk.events())[-1]["seq"]
    await talk.server.call("POST", f"{talk.path}/restart", 200, json=body)
    await talk.wait_for_activity("idle", after=before)


@pytest.mark.intervals(**FAST_SCREEN, stop=1.5)
async def test_the_screen_of_a_run_shows_nothing_of_the_previous_run(server: Server) -> None:
    talk, _ = await begin(server, ignore_signals=True)
    worker = await talk.worker()
    await talk.prompt("[[work 60]]")
    await talk.wait_for_activity("active")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(
            server.http.post(f"{talk.path}/restart", json={})
        )  # the first run still draws meanwhile
        halted = await talk.wait_for_event("worker_exited")
        await server.call("POST", f"{talk.path}/queue", 201, json={"message": "x"})
        await talk.wait_for_activity("idle", after=halted["seq"])
    async with server.socket(f"/ws/session/{talk.id}/worker/{worker['id']}") as ws:
        while (history := json.loads(await ws.recv()))["type"] != "history":
            continue
    assert history["run"] == 2
    assert "> " in history["data"]
    assert "Working" not in history["data"]
