"""What the programs of a session listen on, over REST."""

import pytest

from support.listening_programs import ports_of, serve_in_terminal, type_line, until_ports
from support.ports import free_port
from support.server import Server
from web.people import bearer
from web.test_matrix import NOBODY, guest

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_web_server_in_a_terminal_is_found_until_it_ends(house: Server) -> None:
    session, port = await house.new_session(), free_port()
    assert await ports_of(house, session["id"]) == []
    worker = await serve_in_terminal(house, session["id"], port, role="web")
    [found] = await ports_of(house, session["id"])
    assert found == {
        "port": port,
        "address": "127.0.0.1",
        "workerId": worker["id"],
        "role": "web",
        "pid": found["pid"],
        "command": "python3",
    }
    assert found["pid"] != worker["pid"]  # the shell's
    await type_line(house, worker, "\x03")
    await until_ports(house, session["id"], set())


async def test_what_runs_on_in_the_background_is_found_when_its_terminal_has_ended(house: Server) -> None:
    session, port = await house.new_session(), free_port()
    worker = await house.new_terminal(session["id"])
    await type_line(house, worker, f"setsid -f python3 -m http.server {port} --bind 127.0.0.1 >&/dev/null")
    before = await until_ports(house, session["id"], {port})
    await type_line(house, worker, "exit")
    await house.worker_in(session["id"], worker["id"], "exited")
    assert await ports_of(house, session["id"]) == before
    await house.call("POST", f"/api/sessions/{session['id']}/complete")


async def test_a_session_sees_its_own_ports_and_no_others(house: Server) -> None:
    one, other = await house.new_session(), await house.new_session()
    ports = free_port(), free_port()
    for session, port in zip((one, other), ports, strict=True):
        await serve_in_terminal(house, session["id"], port)
    for session, port in zip((one, other), ports, strict=True):
        assert [each["port"] for each in await ports_of(house, session["id"])] == [port]


async def test_our_own_port_is_nobodys(house: Server) -> None:
    session = await house.new_session()
    await serve_in_terminal(house, session["id"], free_port())
    assert house.port not in [each["port"] for each in await ports_of(house, session["id"])]


async def test_who_may_look_sees_ports_and_a_guest_or_a_delegate_does_not(house: Server) -> None:
    session = await house.new_session()
    path = f"/api/sessions/{session['id']}/ports"
    people = {
        "view": (await bearer(house, "view"), 200),
        "guest": (await guest(house, session["id"]), 403),
        "delegate": (await bearer(house, "delegate"), 403),
    }
    for who, (headers, status) in people.items():
        assert (await house.http.get(path, headers=headers)).status_code == status, who


async def test_a_session_that_is_not_there_has_no_ports(house: Server) -> None:
    await house.call("GET", f"/api/sessions/{NOBODY}/ports", 404)
