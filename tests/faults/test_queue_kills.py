"""Two people fill, edit and order a queue while the server is killed: each message reaches the agent once."""

import asyncio
import json
import os
import random
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.retrying_client import RetryingClient, define_scripted, retry_until_answered
from support.scripted_agent.journal import prompts_in
from support.server import Server
from support.terminal_viewer import CONNECTION_ERRORS

KILLS = 200 if os.environ.get("BULLPEN_FAULTS") == "full" else 20
ITEMS = KILLS  # of both together: each brings more events than a kill waits for
NEVER = "2999-01-01T00:00:00Z"
WORDS = "and then some more words, so that it needs a title of its own"


class Person:
    """Sends each order until it is answered; the same order is done once."""

    def __init__(self, client: RetryingClient, name: str) -> None:
        self.name = name
        self.notices: dict[int, dict[str, Any]] = {}  # by seq: one that comes again is the same
        self._client = client

    async def add(self, message: str, **more: Any) -> str:
        made = await self._send("POST", "", message=message, client_id=self.name, **more)
        return str(made["id"])

    async def edit(self, item_id: str, **changes: Any) -> bool:
        """Whether it was still there."""
        return "id" in await self._send("PATCH", f"/{item_id}", **changes)

    async def move(self, item_id: str, direction: str) -> None:
        await self._send("POST", f"/{item_id}/move", direction=direction)

    async def order(self, what: str) -> None:
        await self._send("POST", f"/{what}")

    async def look(self) -> list[dict[str, Any]]:
        return list((await self._client.get("/queue"))["messages"])

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._listen())
            yield
            task.cancel()

    async def _send(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        key = {"Idempotency-Key": str(uuid.uuid4())}
        place = f"{self._client.path}/queue{path}"
        said: dict[str, Any] = await retry_until_answered(
            lambda: self._client.server.call(method, place, json=body, headers=key)
        )
        return said

    async def _listen(self) -> None:
        after = 0
        while True:
            try:
                async with self._client.server.socket(f"/ws/session/{self._client.id}") as ws:
                    await ws.send(json.dumps({"type": "subscribe", "after": after, "notices": True}))
                    async for message in ws:
                        after = max(after, self._take(json.loads(message)))
            except CONNECTION_ERRORS:
                await asyncio.sleep(0.02)

    def _take(self, frame: dict[str, Any]) -> int:
        if frame["type"].startswith("queue_"):
            assert self.notices.setdefault(frame["seq"], frame) == frame
        return int(frame["events"][-1]["seq"]) if frame["type"] == "events" else 0


async def fill(person: Person, texts: dict[str, str], number: int) -> None:
    """Messages that are titled, scheduled, edited and moved."""
    dice = random.Random(f"{person.name} {number}")
    mine: list[str] = []
    for place in range(number):
        text = f"{person.name}-{place}[[sleep 0.3]]"
        more = {"scheduled_time": NEVER} if place % 10 == 9 else {}
        item_id = await person.add(f"{text} {WORDS}" if place % 2 else text, **more)
        mine.append(item_id)
        texts[item_id] = text
        if dice.random() < 0.3:
            await person.move(dice.choice(mine), dice.choice(["up", "down"]))
        if dice.random() < 0.3:
            edited = dice.choice(mine)
            texts[edited] = f"{text}instead"
            assert await person.edit(edited, message=f"{texts[edited]} {WORDS}")


def check_notices(person: Person, item_id: str, sent: bool) -> None:
    """In the order of R54: added, perhaps titled and moved, then sending and sent, each once."""
    told = [each for _, each in sorted(person.notices.items()) if each["message_id"] == item_id]
    names = [each["type"] for each in told]
    assert told[0]["type"] == "queue_updated"
    assert told[0]["action"] == "added"
    assert [each.get("action") for each in told].count("added") == 1
    assert names[-2:] == ["queue_message_sending", "queue_message_sent"] or not sent, names
    assert [names.count(f"queue_message_{name}") for name in ("sending", "sent")] == [int(sent)] * 2
    assert "queue_message_titled" in names


@pytest.mark.timeout(7200 if KILLS > 20 else 900)
async def test_a_queue_keeps_every_message_once_and_in_order_while_the_server_is_killed(
    server: Server, workspace: Path
) -> None:
    journal = define_scripted(workspace)
    talker = await RetryingClient.begin(server)
    people = [Person(talker, "ada"), Person(RetryingClient(server, talker.id), "bob")]
    texts: dict[str, str] = {}

    async def kill(times: int, step: int) -> None:
        """One kill in every few events: a busy machine is killed as often in the midst of things."""
        begun = len(talker.events)
        for number in range(times):
            await talker.until_length(begun + number * step + random.randint(1, step))
            await server.restart()

    async with talker.following(), people[0].listening(), people[1].listening():
        await talker.until(lambda _: talker.events_of_type("agent_session"))
        settings = {"max_size": 1000}
        await retry_until_answered(
            lambda: server.call("PUT", f"{talker.path}/queue/settings", 200, json=settings)
        )
        await people[0].order("pause")
        async with asyncio.TaskGroup() as tasks:  # all of it is put together under kills
            tasks.create_task(kill(KILLS // 2, 3))
            for person in people:
                tasks.create_task(fill(person, texts, ITEMS // 2))
        seen = await people[1].look()
        assert {item["id"] for item in seen} == set(texts)
        going = [item for item in seen if item["scheduled_time"] is None]
        await people[1].order("resume")
        await kill(KILLS - KILLS // 2, 8)  # and sent under kills
        await talker.until_turns(len(going))
        left = await people[0].look()
        events = await talker.stored_events()
        for person in people:
            last = max(each["seq"] for each in events if each["type"].startswith("queue_"))
            async with asyncio.timeout(60):
                while last not in person.notices:
                    await asyncio.sleep(0.02)

    assert [item["id"] for item in left] == [item["id"] for item in seen if item["scheduled_time"]]
    got = prompts_in(journal)
    assert got == [item["message"] for item in going]
    assert all(message.startswith(texts[item["id"]]) for message, item in zip(got, going, strict=True))
    prompted = [event["data"]["promptId"] for event in talker.events_of_type("user_prompt")]
    assert prompted == [item["id"] for item in going]
    for person in people:
        for item_id in texts:
            check_notices(person, item_id, item_id in prompted)
    assert people[0].notices == people[1].notices
