"""Agents that only have a terminal: what they do, what they are told, and that it is told once."""

from support.server import Server
from support.tui import TuiTalk, define_tui


async def test_r72_the_activity_of_an_agent_in_a_terminal_comes_from_its_screen(server: Server) -> None:
    await define_tui(server)
    talk = await TuiTalk.begin(server)
    await talk.prompt("[[work 0.8]] [[ask]] [[work 0.8]]")
    asks = await talk.does("asking")
    assert "Allow this? (y/n)" in asks["data"]["why"]
    worker = await talk.worker()
    assert (worker["activity"], worker["activitySince"]) == ("asking", asks["timestamp"])
    await talk.types("y")
    end = await talk.seen("turn_end", stopReason="end_turn")
    await talk.does("idle", after=end["seq"])
    assert (await talk.activities())[-4:] == ["active", "asking", "active", "idle"]
    whys = [e["data"]["why"] for e in await talk.events() if e["type"] == "worker_activity"]
    assert whys[-4] == "a prompt was sent"
