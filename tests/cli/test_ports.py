"""`bullpen ports` as a table and as JSON."""

import json

from support.commands import Bullpen
from support.listening_programs import serve_in_terminal
from support.ports import free_port
from support.server import Server


async def test_ports_of_one_session_or_of_all_are_listed(bullpen: Bullpen, server: Server) -> None:
    one, other = await server.new_session(title="one"), await server.new_session(title="other")
    without_ports = await bullpen("ports", "one")
    assert (without_ports.code, without_ports.out) == (
        0,
        "no program listens; start your dev server in a terminal of the session\n",
    )
    port = free_port()
    worker = await serve_in_terminal(server, one["id"], port, role="web")
    table = (await bullpen("ports", one["id"][:8])).out.splitlines()
    assert table[0].split() == ["PORT", "ADDRESS", "SESSION", "ROLE", "PID", "COMMAND"]
    assert [line.split()[:4] for line in table[1:]] == [[str(port), "127.0.0.1", "one", "web"]]
    [listed] = json.loads((await bullpen("ports", "--json")).out)["ports"]
    assert (listed["sessionId"], listed["workerId"], listed["port"]) == (one["id"], worker["id"], port)
    assert json.loads((await bullpen("ports", other["title"], "--json")).out) == {"ports": []}


async def test_an_unknown_session_is_reported(bullpen: Bullpen) -> None:
    done = await bullpen("ports", "nowhere")
    assert done.code == 1
    assert "there is no session or worker called nowhere" in done.err
