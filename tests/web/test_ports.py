"""The ports on which programs of a session listen, over REST."""

import pytest

from support.listening_programs import ports_of, serve_in_terminal, type_line, until_ports
from support.ports import free_port
from support.server import Server
from web.clients import new_token_headers
from web.test_access_matrix import UNKNOWN_ID, guest_headers

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_web_server_in_a_terminal_is_found_until_it_ends(shared_server: Server) -> None:
    session, port = await shared_server.new_session(), free_port()
    assert await ports_of(shared_server, session["id"]) == []
    worker = await serve_in_terminal(shared_server, session["id"], port, role="web")
    [found] = await ports_of(shared_server, session["id"])
    assert found == {
        "port": port,
        "address": "127.0.0.1",
        "workerId": worker["id"],
        "role": "web",
        "pid": found["pid"],
        "command": "python3",
    }
    assert found["pid"] != worker["pid"]  # the pid of the shell
    await type_line(shared_server, worker, "\x03")
    await until_ports(shared_server, session["id"], set())


async def test_a_background_program_is_found_after_its_terminal_has_ended(shared_server: Server) -> None:
    session, port = await shared_server.new_session(), free_port()
    worker = await shared_server.new_terminal(session["id"])
    await type_line(
        shared_server, worker, f"setsid -f python3 -m http.server {port} --bind 127.0.0.1 >&/dev/null"
    )
    before = await until_ports(shared_server, session["id"], {port})
    await type_line(shared_server, worker, "exit")
    await shared_server.worker_in(session["id"], worker["id"], "exited")
    assert await ports_of(shared_server, session["id"]) == before
    await shared_server.call("POST", f"/api/sessions/{session['id']}/complete")


async def test_a_session_sees_its_own_ports_and_no_others(shared_server: Server) -> None:
    one, other = await shared_server.new_session(), await shared_server.new_session()
    ports = free_port(), free_port()
    for session, port in zip((one, other), ports, strict=True):
        await serve_in_terminal(shared_server, session["id"], port)
    for session, port in zip((one, other), ports, strict=True):
        assert [each["port"] for each in await ports_of(shared_server, session["id"])] == [port]


async def test_the_port_of_the_server_belongs_to_no_session(shared_server: Server) -> None:
    session = await shared_server.new_session()
    await serve_in_terminal(shared_server, session["id"], free_port())
    assert shared_server.port not in [each["port"] for each in await ports_of(shared_server, session["id"])]


async def test_a_view_token_sees_ports_and_a_guest_or_a_delegate_does_not(shared_server: Server) -> None:
    session = await shared_server.new_session()
    path = f"/api/sessions/{session['id']}/ports"
    clients = {
        "view": (await new_token_headers(shared_server, "view"), 200),
        "guest": (await guest_headers(shared_server, session["id"]), 403),
        "delegate": (await new_token_headers(shared_server, "delegate"), 403),
    }
    for client, (headers, status) in clients.items():
        assert (await shared_server.http.get(path, headers=headers)).status_code == status, client


async def test_the_ports_of_an_unknown_session_are_not_found(shared_server: Server) -> None:
    await shared_server.call("GET", f"/api/sessions/{UNKNOWN_ID}/ports", 404)
