"""Two users fill, edit and reorder a queue while the server is killed; the agent gets each message once."""

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
ITEMS = KILLS  # of both users together; each item produces more events than a kill waits for
NEVER = "2999-01-01T00:00:00Z"
LONG_TEXT = "and then some more words, so that it needs a title of its own"


class QueueUser:
    """A user of the queue. Repeats each order with the same idempotency key until it is answered."""

    def __init__(self, client: RetryingClient, name: str) -> None:
        self.name = name
        self.notices: dict[int, dict[str, Any]] = {}  # by seq; a notice that is sent again must be the same
        self._client = client

    async def add(self, message: str, **more: Any) -> str:
        made = await self._send("POST", "", message=message, client_id=self.name, **more)
        return str(made["id"])

    async def edit(self, item_id: str, **changes: Any) -> bool:
        """Return whether the item was still in the queue."""
        return "id" in await self._send("PATCH", f"/{item_id}", **changes)

    async def move(self, item_id: str, direction: str) -> None:
        await self._send("POST", f"/{item_id}/move", direction=direction)

    async def order(self, action: str) -> None:
        await self._send("POST", f"/{action}")

    async def list_items(self) -> list[dict[str, Any]]:
        return list((await self._client.get("/queue"))["messages"])

    @asynccontextmanager
    async def following_notices(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(self._follow())
            yield
            task.cancel()

    async def _send(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        key = {"Idempotency-Key": str(uuid.uuid4())}
        url = f"{self._client.path}/queue{path}"
        answer: dict[str, Any] = await retry_until_answered(
            lambda: self._client.server.call(method, url, json=body, headers=key)
        )
        return answer

    async def _follow(self) -> None:
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


async def fill(user: QueueUser, texts: dict[str, str], number: int) -> None:
    """Add messages that are titled, scheduled, edited and moved; record the text of each in `texts`."""
    rng = random.Random(f"{user.name} {number}")
    own_ids: list[str] = []
    for position in range(number):
        text = f"{user.name}-{position}[[sleep 0.3]]"
        more = {"scheduled_time": NEVER} if position % 10 == 9 else {}
        item_id = await user.add(f"{text} {LONG_TEXT}" if position % 2 else text, **more)
        own_ids.append(item_id)
        texts[item_id] = text
        if rng.random() < 0.3:
            await user.move(rng.choice(own_ids), rng.choice(["up", "down"]))
        if rng.random() < 0.3:
            edited = rng.choice(own_ids)
            texts[edited] = f"{text}instead"
            assert await user.edit(edited, message=f"{texts[edited]} {LONG_TEXT}")


def check_notices(user: QueueUser, item_id: str, sent: bool) -> None:
    """Check the order of notices: added, perhaps titled and moved, then sending and sent, each once."""
    notices = [each for _, each in sorted(user.notices.items()) if each["message_id"] == item_id]
    names = [each["type"] for each in notices]
    assert notices[0]["type"] == "queue_updated"
    assert notices[0]["action"] == "added"
    assert [each.get("action") for each in notices].count("added") == 1
    assert names[-2:] == ["queue_message_sending", "queue_message_sent"] or not sent, names
    assert [names.count(f"queue_message_{name}") for name in ("sending", "sent")] == [int(sent)] * 2
    assert "queue_message_titled" in names


@pytest.mark.timeout(7200 if KILLS > 20 else 900)
async def test_a_queue_keeps_every_message_once_and_in_order_while_the_server_is_killed(
    server: Server, workspace: Path
) -> None:
    journal = define_scripted(workspace)
    client = await RetryingClient.begin(server)
    users = [QueueUser(client, "ada"), QueueUser(RetryingClient(server, client.id), "bob")]
    texts: dict[str, str] = {}

    async def kill(times: int, step: int) -> None:
        """Kill the server every few events, so that kills hit the same states on a slow machine."""
        begun = len(client.events)
        for number in range(times):
            await client.until_length(begun + number * step + random.randint(1, step))
            await server.restart()

    async with client.following(), users[0].following_notices(), users[1].following_notices():
        await client.until(lambda _: client.events_of_type("agent_session"))
        settings = {"max_size": 1000}
        await retry_until_answered(
            lambda: server.call("PUT", f"{client.path}/queue/settings", 200, json=settings)
        )
        await users[0].order("pause")
        async with asyncio.TaskGroup() as tasks:  # the queue is filled while the server is killed
            tasks.create_task(kill(KILLS // 2, 3))
            for user in users:
                tasks.create_task(fill(user, texts, ITEMS // 2))
        queued = await users[1].list_items()
        assert {item["id"] for item in queued} == set(texts)
        unscheduled = [item for item in queued if item["scheduled_time"] is None]
        await users[1].order("resume")
        await kill(KILLS - KILLS // 2, 8)  # and sent while the server is killed
        await client.until_turns(len(unscheduled))
        left = await users[0].list_items()
        events = await client.stored_events()
        for user in users:
            last = max(each["seq"] for each in events if each["type"].startswith("queue_"))
            async with asyncio.timeout(60):
                while last not in user.notices:
                    await asyncio.sleep(0.02)

    assert [item["id"] for item in left] == [item["id"] for item in queued if item["scheduled_time"]]
    got = prompts_in(journal)
    assert got == [item["message"] for item in unscheduled]
    assert all(message.startswith(texts[item["id"]]) for message, item in zip(got, unscheduled, strict=True))
    prompted = [event["data"]["promptId"] for event in client.events_of_type("user_prompt")]
    assert prompted == [item["id"] for item in unscheduled]
    for user in users:
        for item_id in texts:
            check_notices(user, item_id, item_id in prompted)
    assert users[0].notices == users[1].notices
