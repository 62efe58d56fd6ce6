"""GET /api/search and `bullpen search`: what was said is found a moment later, also after a kill."""

import asyncio
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from support.commands import Bullpen
from support.server import Server
from support.session_client import SessionClient, define_scripted


async def found(server: Server, count: int, **query: Any) -> list[dict[str, Any]]:
    async with asyncio.timeout(30):
        while True:
            results: list[dict[str, Any]] = (await server.call("GET", "/api/search", params=query))["results"]
            if len(results) == count:
                return results
            await asyncio.sleep(0.05)


async def test_b6_what_was_said_is_found_and_leads_to_its_moment(server: Server) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server, title="needle hunt")
    await talk.run_turn("[[chunk needle]] [[chunk -work]]")
    await server.kill()  # whatever is not indexed yet is at the next start
    await server.start()
    results = await found(server, 3, q="needle")
    assert sorted(each["role"] for each in results) == ["agent", "title", "user"]
    (said,) = await found(server, 1, q="needle work", role="agent")
    event = (await talk.events())[said["seq"] - 1]
    assert (event["type"], event["data"]["text"][:6]) == ("agent_message", "needle")
    assert said["sessionTitle"] == "needle hunt"
    bullpen = Bullpen(server.environment())
    assert f":{said['seq']}" in (await bullpen("search", "needle", "work", "--role", "agent")).out
    assert (await bullpen("search", "nowhere")).out == "nothing found\n"
    await server.call("GET", "/api/search", 400, params={"q": "*"})
    await server.call("GET", "/api/search", 400, params={"q": "x", "after": "soon"})
    await server.call("DELETE", talk.path, params={"purge": True})
    await found(server, 0, q="needle")


async def test_a_search_for_a_role_nobody_has_is_refused(server: Server) -> None:
    bullpen = Bullpen(server.environment())
    why = "bullpen: role is one of user, agent, system, title, terminal, not human\n"
    assert await bullpen("search", "needle", "--role", "human") == (2, "", why)
    none = await bullpen("search", "needle", "--limit", "0")
    assert none == (2, "", "bullpen: --limit must be a whole number, 1 or more, not 0\n")


async def test_a_search_for_a_type_nothing_has_is_refused(server: Server) -> None:
    bullpen = Bullpen(server.environment())
    done = await bullpen("search", "needle", "--type", "user_promt")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("bullpen: type is one of user_prompt, agent_message, ")
    assert done.err.endswith(", terminal, not user_promt\n")
    await server.call("GET", "/api/search", params={"q": "needle", "type": "terminal"})


async def test_a_search_that_finds_nothing_of_an_agent_nobody_knows_says_so(server: Server) -> None:
    await define_scripted(server)
    bullpen = Bullpen(server.environment())
    doubt = "bullpen: no agent here is called scriptd; did you mean scripted?\n"
    assert await bullpen("search", "needle", "--agent", "scriptd") == (0, "nothing found\n", doubt)
    assert await bullpen("search", "needle", "--agent", "scripted") == (0, "nothing found\n", "")


async def test_a_time_without_a_zone_is_the_time_of_who_searches(server: Server) -> None:
    await server.new_session(title="needle")
    await found(server, 1, q="needle")
    bullpen = Bullpen(server.environment() | {"TZ": "EAST-14"})
    hour_ago = f"{datetime.now(UTC) + timedelta(hours=13):%Y-%m-%dT%H:%M}"  # as a clock there shows it
    assert "needle" in (await bullpen("search", "needle", "--after", hour_ago)).out
    assert (await bullpen("search", "needle", "--before", hour_ago)).out == "nothing found\n"
    assert (await bullpen("search", "needle", "--after", f"{hour_ago}Z")).out == "nothing found\n"
    why = "bullpen: --after needs a time like 2026-03-01 or 2026-03-01T18:30, not soon\n"
    assert await bullpen("search", "needle", "--after", "soon") == (2, "", why)
    assert await bullpen("usage", "--after", "soon") == (2, "", why)


async def type_in(server: Server, worker: dict[str, Any], text: str) -> None:
    """Types a line and sees it taken."""
    path = f"/ws/session/{worker['sessionId']}/worker/{worker['id']}"
    async with server.socket(f"{path}?client={uuid.uuid4()}") as ws:
        await ws.send(json.dumps({"type": "input", "n": 1, "data": text}))
        while True:
            message = await ws.recv()
            if isinstance(message, str) and json.loads(message)["type"] == "ack":
                return


async def test_b6_what_a_terminal_printed_is_found_in_its_recording(server: Server) -> None:
    session = await server.new_session(title="printing")
    worker = await server.new_terminal(session["id"])
    await type_in(server, worker, "printf 'grow\\033[1mths%s\\033[0m\\r\\n' $((40 + 2))\n")
    (printed,) = await found(server, 1, q="growths42")
    assert (printed["role"], printed["workerId"], printed["run"]) == ("terminal", worker["id"], 1)
    path = f"/api/sessions/{session['id']}/workers/{worker['id']}/output"
    output = await server.http.get(path, params={"after": printed["offset"]})
    assert b"grow\x1b[1mths42" in output.content
    await server.kill()  # what is printed while no server runs is found later, the rest once
    await server.start()
    await type_in(server, worker, "echo last wo''rds; exit\n")
    await server.worker_in(session["id"], worker["id"], "exited")
    await found(server, 1, q="last words")
    await found(server, 1, q="growths42")


async def test_b6_what_a_crowd_of_terminals_printed_is_found_in_all_of_them(server: Server) -> None:
    session = await server.new_session(title="crowd")
    workers = [await server.new_terminal(session["id"]) for _ in range(60)]
    for number, worker in enumerate(workers):
        await type_in(server, worker, f"echo crow''ded no{number}x\n")
    every = await found(server, len(workers), q="crowded", limit=100)
    assert {each["workerId"] for each in every} == {worker["id"] for worker in workers}


async def test_b6_of_a_flood_the_end_is_found(server: Server) -> None:
    session = await server.new_session(title="flooding")
    worker = await server.new_terminal(session["id"])
    await type_in(server, worker, "seq 1000000 1700000; echo over$((40 + 2))\n")
    await found(server, 1, q="over42")
    await found(server, 1, q="1699999")
    await found(server, 0, q="1000500")
