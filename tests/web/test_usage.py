"""`GET /api/usage` and `bullpen usage`: the tokens and cost of turns, as agents report them."""

import json

from support.commands import Bullpen
from support.server import Server
from support.session_client import SessionClient, define_scripted


async def test_the_usage_of_turns_is_grouped_and_survives_a_kill(server: Server) -> None:
    cost = {"amount": 0.5, "currency": "USD"}
    update = {"sessionUpdate": "usage_update", "used": 100, "size": 1000, "cost": cost}
    await define_scripted(server, script={"prompts": [[{"do": "update", "update": update}]]})
    conversation = await SessionClient.begin(server, title="costly")
    await conversation.run_turn("one")
    await conversation.run_turn("two")
    await server.kill()
    await server.start()
    report = await server.call("GET", "/api/usage", params={"by": "session"})
    (group,) = report["groups"]
    assert (group["key"], group["title"], group["turns"]) == (conversation.id, "costly", 2)
    assert group["costs"] == report["total"]["costs"] == [cost]
    turns = (await server.call("GET", "/api/usage", params={"by": "turn"}))["groups"]
    assert [each["costs"] for each in turns] == [[], [cost]]
    bullpen = Bullpen(server.environment())
    assert "0.50 USD" in (await bullpen("usage")).out
    shown = json.loads((await bullpen("usage", "--by", "agent", "--json")).out)
    assert shown["groups"][0]["key"] == "scripted"
    assert (await bullpen("usage", "--before", "2020-01-01")).out == "no agent has reported its usage\n"
    await server.call("GET", "/api/usage", 400, params={"by": "moon"})
    await server.call("GET", "/api/usage", 400, params={"after": "soon"})
