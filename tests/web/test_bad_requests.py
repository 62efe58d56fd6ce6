"""Requests without a credential that once caused a 500 response and filled the log."""

import pytest

from support.server import Server
from web.raw_connection import open_raw, request_head

BAD = {
    "a long number in a worker's key": (
        "GET /api/sessions",
        f"Authorization: Bearer bpw_x.y.{'1' * 5000}",
        401,
    ),
    "a null byte": ("GET /%00", "x: y", 404),
    "a name too long for a file": (f"GET /{'x' * 300}", "x: y", 404),
    "a null byte below assets": ("GET /assets/%00x", "x: y", 404),
    "a path that leads out of the build": ("GET /assets/%2e%2e/%2e%2e/pages.py", "x: y", 404),
    "a directory of the build": ("GET /assets", "x: y", 404),
    "a name that is not UTF-8": ("GET /%ff%fe", "x: y", 404),
    "a name with surrogates": ("GET /%ed%a0%80", "x: y", 404),
    "a quoted cookie that takes a quadratic time to unquote": (
        "GET /api/sessions",
        'Cookie: bullpen="' + "\\" * 60_000 + '"',
        401,
    ),
    "digits of another script in a worker's key": (
        "GET /api/sessions",
        "Authorization: Bearer bpw_x.y.\u0661",
        401,
    ),
}
FLOOD = 8000


async def statuses(server: Server, name: str, times: int = 1) -> set[int]:
    """Send a bad request `times` times over one connection; return the statuses of the responses."""
    method_and_target, field, _ = BAD[name]
    request = request_head(server, method_and_target, field) + b"\r\n"
    found = set()
    async with open_raw(server) as connection:
        for _ in range(times):
            await connection.send(request)
            found.add(await connection.read_status())
    return found


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_request_is_refused_without_a_traceback_and_leaves_an_audit_line(
    server: Server, name: str
) -> None:
    before = len(server.audit_lines())
    assert await statuses(server, name) == {BAD[name][2]}
    assert "Traceback" not in server.output()
    recorded = [(line["principal"], line["status"]) for line in server.audit_lines()[before:]]
    assert recorded == [(None, BAD[name][2])]


@pytest.mark.own_server
async def test_8000_bad_requests_leave_the_earlier_lines_of_the_log_in_place(server: Server) -> None:
    log = server.home / "logs" / "server.log"
    await statuses(server, "a long number in a worker's key")  # writes a line to the log
    first_line = log.read_text().splitlines()[0]
    for name in BAD:
        assert await statuses(server, name, FLOOD // len(BAD) + 1) == {BAD[name][2]}
    async with open_raw(server) as connection:
        await connection.send(b"nonsense\r\n\r\n")
        assert await connection.read_status() == 400
    assert log.read_text().startswith(first_line)
    assert not log.with_name("server.log.1").exists()
    assert log.stat().st_size < 200_000
    assert (server.home / "logs" / "audit.log").stat().st_size < 1_000_000
