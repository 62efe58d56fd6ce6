"""The server is killed before it answers a request with an idempotency key; its repetition acts once."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from support.pictures import png
from support.server import Server
from support.session_client import SessionClient, define_scripted
from support.strace import killed_at

# A killed process keeps what it wrote: at pwrite64 the commit has not happened, at its fdatasync it has.
BEFORE, AFTER = "pwrite64", "fdatasync"
ROUNDS = 10 if os.environ.get("BULLPEN_FAULTS") == "full" else 1
SECONDS = 60.0

Point = tuple[str, int]
Send = Callable[[], Awaitable[httpx.Response]]


async def send_until_killed(server: Server, point: Point, send: Send) -> bool:
    """Send a request while the server is killed at the n-th call of a kind; return whether it was killed.

    The server runs again afterwards.
    """
    process = server.process
    assert process is not None
    async with killed_at(server.pid, point[1], point[0]):
        try:
            await send()
        except httpx.TransportError:
            await asyncio.to_thread(process.wait, SECONDS)
    killed = process.poll() is not None
    if killed:
        await server.start()
    return killed


async def events_after_cancel(talk: SessionClient) -> list[dict[str, Any]]:
    """Return the events once each cancel was followed by the end of its turn."""
    async with asyncio.timeout(SECONDS):
        while True:
            events = await talk.events()
            cancels = [each for each in events if is_cancel(each)]
            ends = [each for each in events if each["type"] == "turn_end"]
            if len(ends) >= len(cancels):
                return events
            await asyncio.sleep(0.02)


def is_cancel(event: dict[str, Any]) -> bool:
    return bool(event["type"] == "notice_sent" and event["data"].get("method") == "session/cancel")


@pytest.mark.timeout(900)
async def test_a_cancel_repeated_after_a_kill_never_cancels_the_next_turn(server: Server) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server)
    kills = effects = 0
    for number, point in enumerate([(BEFORE, 1), (AFTER, 1), (AFTER, 2), (AFTER, 3)] * ROUNDS):
        headers = {"Idempotency-Key": f"cancel {number}"}
        seq = (await talk.prompt("[[wait_cancel]]"))["seq"]
        await talk.wait_for_event("turn_start", after=seq - 1)

        async def cancel(headers: dict[str, str] = headers) -> httpx.Response:
            return await server.http.post(f"{talk.path}/cancel", headers=headers)

        kills += await send_until_killed(server, point, cancel)
        over = any(
            each["type"] == "turn_end" for each in (await events_after_cancel(talk)) if each["seq"] > seq
        )
        if over:
            effects += 1
            seq = (await talk.prompt("[[wait_cancel]]"))["seq"]
            await talk.wait_for_event("turn_start", after=seq - 1)
        assert (await cancel()).status_code == 204
        if over:
            assert not any(is_cancel(each) for each in await talk.events(after=seq)), point
            await server.call("POST", f"{talk.path}/cancel", 204)
        await talk.wait_for_event("turn_end", after=seq)
    assert kills, "no kill happened, so nothing was tested"
    assert effects, "no cancel had its effect before the kill, so nothing was tested"


async def test_an_upload_repeated_after_a_kill_is_one_image(server: Server) -> None:
    kills = 0
    for point in [("rename", 1), (BEFORE, 1), (AFTER, 1)] * ROUNDS:  # the file is stored before the answer
        session = await server.new_session()
        path = f"/api/sessions/{session['id']}/images"
        headers = {"Idempotency-Key": "once"}

        async def upload(path: str = path, headers: dict[str, str] = headers) -> httpx.Response:
            return await server.http.post(path, content=png(), headers=headers)

        kills += await send_until_killed(server, point, upload)
        image = (await upload()).json()
        assert (await upload()).json() == image
        assert (await server.http.get(f"{path}/{image['id']}")).content == png()
        assert [file.stem for file in (server.home / "images" / session["id"]).glob("[!.]*")] == [image["id"]]
    assert kills, "no kill happened, so nothing was tested"
