"""The server is killed while an agent in a terminal works: what it was told it was told once."""

import asyncio
import random
from pathlib import Path

from support.server import Server
from support.talk import SECONDS
from support.tui import TuiTalk, define_tui, journal_of

STAGES = ("stored", "pasted", "submitted", "done")


async def written(talk: TuiTalk) -> int:
    """How much the agent has written."""
    worker = await talk.worker()
    answer = await talk.server.http.get(f"{talk.path}/workers/{worker['id']}/output")
    return int(answer.headers["X-Bullpen-End"])


async def reached(stage: str, talk: TuiTalk, journal: Path, before: int, number: int) -> None:
    """Until the prompt is stored, echoed, taken by the agent, or worked off."""
    async with asyncio.timeout(SECONDS):
        while True:
            match stage:
                case "stored":
                    return
                case "pasted" if await written(talk) > before:
                    return
                case "submitted" if len(journal_of(journal, "prompt")) > number:
                    return
                case "done" if len(journal_of(journal, "done")) > number:
                    return
            await asyncio.sleep(0.01)


async def test_r73_every_prompt_is_typed_once_over_kills_of_the_server(server: Server, faults: int) -> None:
    journal = await define_tui(server)
    talk = await TuiTalk.begin(server)
    kills = faults if faults > 20 else 5
    texts = [f"prompt {number}\n{'x' * random.randrange(20_000)} [[work 0.2]]" for number in range(kills)]
    for number, text in enumerate(texts):
        before = await written(talk)
        prompted = await talk.prompt(text)
        await reached(random.choice(STAGES), talk, journal, before, number)
        await server.restart()
        start = await talk.seen("turn_start", promptId=prompted["promptId"])
        await talk.seen("turn_end", after=start["seq"])
        again = await talk.prompt(text, promptId=prompted["promptId"])
        assert again == prompted
    assert journal_of(journal, "prompt") == texts
    assert len(set(journal_of(journal, "pid"))) == 1
    said = [e["data"]["text"] for e in await talk.events() if e["type"] == "user_prompt"]
    assert said == texts


async def test_r73_an_activity_is_told_again_only_when_it_changed_meanwhile(server: Server) -> None:
    await define_tui(server)
    talk = await TuiTalk.begin(server)
    await talk.prompt("[[work 0.6]] [[ask]] [[work 0.2]]")
    asks = await talk.does("asking")
    before = await talk.activities()
    await server.restart()
    worker = await talk.worker()
    assert (worker["activity"], worker["activitySince"]) == ("asking", asks["timestamp"])
    async with server.socket(f"/ws/session/{talk.id}/worker/{worker['id']}") as ws:
        async with asyncio.timeout(SECONDS):
            while "Allow this" not in str(await ws.recv()):
                continue
    assert await talk.activities() == before
    await talk.types("y")
    await talk.seen("turn_end", stopReason="end_turn")


async def test_r73_what_it_came_to_while_no_server_ran_is_seen_at_the_next_start(server: Server) -> None:
    journal = await define_tui(server)
    talk = await TuiTalk.begin(server)
    await talk.prompt("[[work 2]]")
    await talk.seen("notice_sent", method="submit")
    async with asyncio.timeout(SECONDS):
        while not journal_of(journal, "prompt"):
            await asyncio.sleep(0.02)
        await server.kill()
        while not journal_of(journal, "done"):
            await asyncio.sleep(0.02)
    await server.start()
    await talk.seen("turn_end", stopReason="end_turn")
    assert (await talk.activities())[-2:] == ["active", "idle"]
