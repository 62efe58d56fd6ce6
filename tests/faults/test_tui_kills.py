"""The server is killed while a terminal agent works: each prompt is typed once."""

import asyncio
import random
from pathlib import Path

import httpx
import pytest

from bullpen.workers.children import ChildHandles
from support.intervals import in_environment
from support.server import Server, has_ended
from support.session_client import SECONDS
from support.tui_session_client import FAST_SCREEN, TuiSessionClient, define_tui, journal_of

pytestmark = pytest.mark.intervals(**FAST_SCREEN)
STAGES = ("stored", "pasted", "submitted", "done")


async def output_length(talk: TuiSessionClient) -> int:
    """Return the number of bytes that the agent has written."""
    worker = await talk.worker()
    answer = await talk.server.http.get(f"{talk.path}/workers/{worker['id']}/output")
    return int(answer.headers["X-Bullpen-End"])


async def wait_for_stage(stage: str, talk: TuiSessionClient, journal: Path, before: int, number: int) -> None:
    """Wait until the prompt is stored, echoed, submitted or done."""
    async with asyncio.timeout(SECONDS):
        while True:
            match stage:
                case "stored":
                    return
                case "pasted" if await output_length(talk) > before:
                    return
                case "submitted" if len(journal_of(journal, "prompt")) > number:
                    return
                case "done" if len(journal_of(journal, "done")) > number:
                    return
            await asyncio.sleep(0.01)


async def test_every_prompt_is_typed_once_while_the_server_is_killed(server: Server, faults: int) -> None:
    journal = await define_tui(server)
    talk = await TuiSessionClient.begin(server)
    kills = faults if faults > 20 else 5
    texts = [f"prompt {number}\n{'x' * random.randrange(20_000)} [[work 0.2]]" for number in range(kills)]
    for number, text in enumerate(texts):
        before = await output_length(talk)
        prompted = await talk.prompt(text)
        await wait_for_stage(random.choice(STAGES), talk, journal, before, number)
        await server.restart()
        start = await talk.wait_for_event("turn_start", promptId=prompted["promptId"])
        await talk.wait_for_event("turn_end", after=start["seq"])
        again = await talk.prompt(text, promptId=prompted["promptId"])
        assert again == prompted
    assert journal_of(journal, "prompt") == texts
    assert len(set(journal_of(journal, "process"))) == 1
    stored = [e["data"]["text"] for e in await talk.events() if e["type"] == "user_prompt"]
    assert stored == texts


async def test_after_a_restart_an_activity_is_stored_again_only_when_it_changed(server: Server) -> None:
    await define_tui(server)
    talk = await TuiSessionClient.begin(server)
    await talk.prompt("[[work 0.6]] [[ask]] [[work 0.2]]")
    asks = await talk.wait_for_activity("asking")
    before = await talk.activities()
    await server.restart()
    worker = await talk.worker()
    assert (worker["activity"], worker["activitySince"]) == ("asking", asks["timestamp"])
    async with server.socket(f"/ws/session/{talk.id}/worker/{worker['id']}") as ws:
        async with asyncio.timeout(SECONDS):
            while "Allow this" not in str(await ws.recv()):
                continue
    assert await talk.activities() == before
    await talk.type("y")
    await talk.wait_for_event("turn_end", stopReason="end_turn")


async def test_the_end_of_a_turn_while_no_server_ran_is_found_at_the_next_start(server: Server) -> None:
    journal = await define_tui(server)
    talk = await TuiSessionClient.begin(server)
    await talk.prompt("[[work 2]]")
    await talk.wait_for_event("notice_sent", method="submit")
    async with asyncio.timeout(SECONDS):
        while not journal_of(journal, "prompt"):
            await asyncio.sleep(0.02)
        await server.kill()
        while not journal_of(journal, "done"):
            await asyncio.sleep(0.02)
    await server.start()
    await talk.wait_for_event("turn_end", stopReason="end_turn")
    assert (await talk.activities())[-2:] == ["active", "idle"]


async def test_an_agent_that_was_being_restarted_is_ended_by_the_next_server(server: Server) -> None:
    talk, pid = await kill_server_during_restart(server)
    await server.start()
    await wait_for_end(pid)
    worker = await talk.worker()
    assert (worker["state"], worker["run"]) == ("exited", 1)


async def test_a_queued_message_starts_an_agent_only_after_its_last_run_has_ended(server: Server) -> None:
    talk, pid = await kill_server_during_restart(server)
    await server.start()
    await server.call("POST", f"{talk.path}/queue", 201, json={"message": "[[work 0.1]]"})
    await server.worker_in(talk.id, (await talk.worker())["id"], "active")
    assert has_ended(pid)
    await talk.wait_for_event("turn_end", stopReason="end_turn")


async def test_a_run_whose_successor_is_stored_leaves_nothing_in_the_keeper(server: Server) -> None:
    talk, pid = await kill_server_during_restart(server, with_message=True)
    await server.start()
    worker = await server.worker_in(talk.id, (await talk.worker())["id"], "active")
    assert worker["run"] == 2
    assert has_ended(pid)
    await server.kill()
    async with ChildHandles.open(server.home) as children:
        assert [(child.worker_id, child.run) for child in children.all()] == [(worker["id"], 2)]


async def kill_server_during_restart(
    server: Server, with_message: bool = False
) -> tuple[TuiSessionClient, int]:
    """Kill the server after it has stored the end of a run and before it has ended the process.

    Return the conversation and the pid of the process, which still runs.
    """
    await define_tui(server, ignore_signals=True)
    talk = await TuiSessionClient.begin(server)
    pid = (await talk.worker())["pid"]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(restart(talk))
        await talk.wait_for_event("worker_exited")
        if with_message:
            await server.call("POST", f"{talk.path}/queue", 201, json={"message": "[[work 0.1]]"})
        await server.kill()
    assert not has_ended(pid)
    server.set(**in_environment(**FAST_SCREEN, stop=0.5))
    return talk, pid


async def restart(talk: TuiSessionClient) -> None:
    try:
        await talk.server.call("POST", f"{talk.path}/restart", json={"continueConversation": True})
    except httpx.TransportError:
        return
    raise AssertionError("the server answered before it was killed")


async def wait_for_end(pid: int) -> None:
    async with asyncio.timeout(SECONDS):
        while not has_ended(pid):
            await asyncio.sleep(0.02)
