"""PostgreSQL stops for seconds during a turn: clients get 503 and retry, and no data is lost."""

import asyncio
import re
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import BrowserContext, expect

from bullpen import __version__
from bullpen.client import Client
from support.chat_page import ChatPage
from support.commands import Bullpen
from support.databases import Cluster
from support.intervals import in_environment
from support.pages import log_in
from support.server import Server
from support.session_client import SessionClient, define_scripted

CHUNKS = 150


@pytest.fixture
async def postgresql_server(cluster: Cluster, tmp_path: Path, workspace: Path) -> AsyncIterator[Server]:
    environment = {
        "BULLPEN_DATABASE_URL": cluster.new_database(),
        **in_environment(database_heartbeat=0.5),
    }
    server = Server(tmp_path / "home", workspace, environment)
    await server.start()
    await define_scripted(server)
    yield server
    await server.close()


async def until_degraded(server: Server) -> dict[str, Any]:
    """Wait until the health route reports that the database cannot be reached. Return its response."""
    async with asyncio.timeout(60):
        while (answer := await server.http.get("/api/health")).status_code == 200:
            await asyncio.sleep(0.02)
    assert answer.status_code == 503
    body: dict[str, Any] = answer.json()
    return body


async def prompt(talk: SessionClient, text: str, key: str) -> httpx.Response:
    return await talk.server.http.post(
        f"{talk.path}/prompt", json={"text": text, "busy": "queue"}, headers={"Idempotency-Key": key}
    )


async def test_prompts_get_503_while_the_database_is_away_and_the_turn_completes_afterwards(
    postgresql_server: Server, cluster: Cluster
) -> None:
    talk = await SessionClient.begin(postgresql_server)
    await talk.prompt(f"[[stream n={CHUNKS} delay=0.02]] [[chunk end]]")
    await talk.wait_for_event("agent_message")
    cluster.stop()
    key = str(uuid.uuid4())
    refused = await prompt(talk, "[[chunk once]]", key)
    assert (refused.status_code, refused.json()["error"]) == (503, "unavailable"), refused.text
    assert re.match("the PostgreSQL database test_.* cannot be reached", refused.json()["message"])
    assert int(refused.headers["Retry-After"]) > 0
    assert await until_degraded(postgresql_server) == {
        "status": "degraded",
        "version": __version__,
        "away": ["database"],
    }
    for path in ("/api/sessions", f"{talk.path}/events"):
        assert (await postgresql_server.http.get(path)).status_code == 503
    cluster.start()
    await postgresql_server.ready()
    async with asyncio.timeout(60):
        while (again := await prompt(talk, "[[chunk once]]", key)).status_code == 503:
            await asyncio.sleep(0.05)
    assert again.status_code == 202, again.text
    assert (await prompt(talk, "[[chunk once]]", key)).json() == again.json()
    start = await talk.wait_for_event("turn_start", promptId=again.json()["promptId"])
    await talk.wait_for_event("turn_end", after=start["seq"])
    text = await talk.agent_text()
    assert text == "".join(f"<{n}>" for n in range(CHUNKS)) + "endonce"
    events = await talk.events()
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (await talk.worker())["state"] == "active"


async def test_health_notices_that_an_idle_database_stops_and_starts_again(
    postgresql_server: Server, cluster: Cluster
) -> None:
    cluster.stop()
    assert (await until_degraded(postgresql_server))["away"] == ["database"]
    cluster.start()
    await postgresql_server.ready()


async def test_the_command_line_says_that_the_database_is_away(
    postgresql_server: Server, cluster: Cluster
) -> None:
    bullpen = Bullpen(postgresql_server.environment())
    cluster.stop()
    await until_degraded(postgresql_server)
    status = await bullpen("status")
    assert status.code == 1
    assert "is running, but cannot reach its database" in status.out
    checkup = await bullpen("doctor")
    assert "but cannot reach its database" in checkup.out
    assert checkup.err == ""  # it does not wait for the database
    listing = asyncio.ensure_future(bullpen("ls"))
    await asyncio.sleep(2)
    cluster.start()
    done = await listing
    assert done.code == 0
    assert re.match("the PostgreSQL database test_.* cannot be reached.* Trying again", done.err)


async def test_a_client_sends_a_prompt_again_until_the_database_is_back(
    postgresql_server: Server, cluster: Cluster
) -> None:
    talk = await SessionClient.begin(postgresql_server)
    cluster.stop()
    await until_degraded(postgresql_server)
    async with Client(postgresql_server.url, postgresql_server.token) as client:
        sending = asyncio.ensure_future(client.prompt(talk.id, "[[chunk once]]"))
        await asyncio.sleep(1)
        assert not sending.done()
        cluster.start()
        await sending
    await talk.wait_for_event("turn_end")
    assert await talk.agent_text() == "once"


async def test_the_page_explains_why_a_message_waits_and_sends_it_once_when_the_database_is_back(
    postgresql_server: Server, cluster: Cluster, profile: BrowserContext
) -> None:
    await log_in(profile, postgresql_server)
    chat = await ChatPage.at(profile, await SessionClient.begin(postgresql_server))
    cluster.stop()
    await chat.send_message("[[chunk once]]")
    waits = "This message is kept here and will be sent later: the PostgreSQL database"
    await expect(chat.page.get_by_text(waits)).to_contain_text("cannot be reached")
    cluster.start()
    await chat.talk.wait_for_event("turn_end")
    assert await chat.talk.agent_text() == "once"
    await expect(chat.page.get_by_text(waits)).to_have_count(0)
    await expect(chat.entries.filter(has_text="[[chunk once]]")).to_have_count(1)
