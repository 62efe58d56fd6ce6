"""`GET /api/search` and `bullpen search`: messages and output are found soon, also after a kill."""

import asyncio
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from support.commands import Bullpen
from support.server import Server
from support.session_client import SessionClient, define_scripted


async def wait_for_results(server: Server, count: int, **query: Any) -> list[dict[str, Any]]:
    """Search until there are `count` results, and return them."""
    async with asyncio.timeout(30):
        while True:
            results: list[dict[str, Any]] = (await server.call("GET", "/api/search", params=query))["results"]
            if len(results) == count:
                return results
            await asyncio.sleep(0.05)


async def test_a_message_is_found_with_the_seq_of_its_event(server: Server) -> None:
    await define_scripted(server)
    conversation = await SessionClient.begin(server, title="needle hunt")
    await conversation.run_turn("[[chunk needle]] [[chunk -work]]")
    await server.kill()  # messages that are not indexed yet are indexed at the next start
    await server.start()
    results = await wait_for_results(server, 3, q="needle")
    assert sorted(each["role"] for each in results) == ["agent", "title", "user"]
    (answer,) = await wait_for_results(server, 1, q="needle work", role="agent")
    event = (await conversation.events())[answer["seq"] - 1]
    assert (event["type"], event["data"]["text"][:6]) == ("agent_message", "needle")
    assert answer["sessionTitle"] == "needle hunt"
    bullpen = Bullpen(server.environment())
    assert f":{answer['seq']}" in (await bullpen("search", "needle", "work", "--role", "agent")).out
    assert (await bullpen("search", "nowhere")).out == "nothing found\n"
    await server.call("GET", "/api/search", 400, params={"q": "*"})
    await server.call("GET", "/api/search", 400, params={"q": "x", "after": "soon"})
    await server.call("DELETE", conversation.path, params={"purge": True})
    await wait_for_results(server, 0, q="needle")


async def test_a_search_for_an_unknown_role_is_refused(server: Server) -> None:
    bullpen = Bullpen(server.environment())
    error = "bullpen: role is one of user, agent, system, title, terminal, not human\n"
    assert await bullpen("search", "needle", "--role", "human") == (2, "", error)
    refused = await bullpen("search", "needle", "--limit", "0")
    assert refused == (2, "", "bullpen: --limit must be a whole number, 1 or more, not 0\n")


async def test_a_search_for_an_unknown_type_is_refused(server: Server) -> None:
    bullpen = Bullpen(server.environment())
    done = await bullpen("search", "needle", "--type", "user_promt")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("bullpen: type is one of user_prompt, agent_message, ")
    assert done.err.endswith(", terminal, not user_promt\n")
    await server.call("GET", "/api/search", params={"q": "needle", "type": "terminal"})


async def test_an_empty_search_for_an_unknown_agent_suggests_a_known_one(server: Server) -> None:
    await define_scripted(server)
    bullpen = Bullpen(server.environment())
    suggestion = "bullpen: no agent here is called scriptd; did you mean scripted?\n"
    assert await bullpen("search", "needle", "--agent", "scriptd") == (0, "nothing found\n", suggestion)
    assert await bullpen("search", "needle", "--agent", "scripted") == (0, "nothing found\n", "")


async def test_a_time_without_a_zone_is_in_the_zone_of_the_command_line(server: Server) -> None:
    await server.new_session(title="needle")
    await wait_for_results(server, 1, q="needle")
    bullpen = Bullpen(server.environment() | {"TZ": "EAST-14"})
    # One hour ago, as a clock in the zone of the command line shows it.
    hour_ago = f"{datetime.now(UTC) + timedelta(hours=13):%Y-%m-%dT%H:%M}"
    assert "needle" in (await bullpen("search", "needle", "--after", hour_ago)).out
    assert (await bullpen("search", "needle", "--before", hour_ago)).out == "nothing found\n"
    assert (await bullpen("search", "needle", "--after", f"{hour_ago}Z")).out == "nothing found\n"
    error = "bullpen: --after needs a time like 2026-03-01 or 2026-03-01T18:30, not soon\n"
    assert await bullpen("search", "needle", "--after", "soon") == (2, "", error)
    assert await bullpen("usage", "--after", "soon") == (2, "", error)


async def type_in(server: Server, worker: dict[str, Any], text: str) -> None:
    """Type a line and wait for its acknowledgement."""
    path = f"/ws/session/{worker['sessionId']}/worker/{worker['id']}"
    async with server.socket(f"{path}?client={uuid.uuid4()}") as ws:
        await ws.send(json.dumps({"type": "input", "n": 1, "data": text}))
        while True:
            message = await ws.recv()
            if isinstance(message, str) and json.loads(message)["type"] == "ack":
                return


async def test_output_of_a_terminal_is_found_with_its_offset_in_the_recording(server: Server) -> None:
    session = await server.new_session(title="printing")
    worker = await server.new_terminal(session["id"])
    await type_in(server, worker, "printf 'grow\\033[1mths%s\\033[0m\\r\\n' $((40 + 2))\n")
    (printed,) = await wait_for_results(server, 1, q="growths42")
    assert (printed["role"], printed["workerId"], printed["run"]) == ("terminal", worker["id"], 1)
    path = f"/api/sessions/{session['id']}/workers/{worker['id']}/output"
    output = await server.http.get(path, params={"after": printed["offset"]})
    assert b"grow\x1b[1mths42" in output.content
    # Output without a running server is indexed later, and earlier output is not indexed twice.
    await server.kill()
    await server.start()
    await type_in(server, worker, "echo last wo''rds; exit\n")
    await server.worker_in(session["id"], worker["id"], "exited")
    await wait_for_results(server, 1, q="last words")
    await wait_for_results(server, 1, q="growths42")


async def test_output_of_many_terminals_is_found_in_all_of_them(server: Server) -> None:
    session = await server.new_session(title="many terminals")
    workers = [await server.new_terminal(session["id"]) for _ in range(60)]
    for number, worker in enumerate(workers):
        await type_in(server, worker, f"echo crow''ded no{number}x\n")
    results = await wait_for_results(server, len(workers), q="crowded", limit=100)
    assert {each["workerId"] for each in results} == {worker["id"] for worker in workers}


async def test_the_end_of_a_flood_of_output_is_found(server: Server) -> None:
    session = await server.new_session(title="flooding")
    worker = await server.new_terminal(session["id"])
    await type_in(server, worker, "seq 1000000 1700000; echo over$((40 + 2))\n")
    await wait_for_results(server, 1, q="over42")
    await wait_for_results(server, 1, q="1699999")
    await wait_for_results(server, 0, q="1000500")
