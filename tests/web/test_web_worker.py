"""A web worker shows a page of the server's machine: it has no process, and only its URL is checked."""

from typing import Any

import pytest

from support.commands import Bullpen
from support.server import Server
from support.session_client import SessionClient

session_loop = pytest.mark.asyncio(loop_scope="session")


async def add(server: Server, session_id: str, expect: int = 201, **body: Any) -> dict[str, Any]:
    worker: dict[str, Any] = await server.call(
        "POST", f"/api/sessions/{session_id}/workers", expect, json={"type": "web", **body}
    )
    return worker


async def test_a_web_worker_is_active_until_it_is_ended_also_over_a_restart(server: Server) -> None:
    session = await server.new_session()
    path = f"/api/sessions/{session['id']}"
    added = await add(server, session["id"], url="http://localhost:5173", name="Page")
    assert (added["type"], added["role"], added["url"]) == ("web", "page", "http://localhost:5173/")
    active = await server.worker_in(session["id"], added["id"], "active")
    assert (active["status"], active["pid"], active["exitCode"]) == ("connected", None, None)
    await server.restart()
    assert await server.worker_in(session["id"], added["id"], "active") == active
    assert (await server.call("GET", f"{path}?brief=true"))["live"]
    ended = await server.call("DELETE", f"{path}/workers/{added['id']}", 200)
    assert (ended["state"], ended["url"]) == ("terminated", active["url"])
    await server.call("POST", f"{path}/workers/{added['id']}/restart", 200)
    again = await server.worker_in(session["id"], added["id"], "active")
    assert (again["run"], again["url"]) == (2, active["url"])
    await server.call("POST", f"{path}/complete", 200)
    assert (await server.worker_in(session["id"], added["id"], "terminated"))["run"] == 2


@session_loop
@pytest.mark.parametrize(
    ("url", "stored"),
    [
        ("http://127.0.0.1:8000/a b".replace(" ", "%20"), "http://127.0.0.1:8000/a%20b"),
        ("http://[::1]:8080/x?y=1#z", "http://[::1]:8080/x?y=1#z"),
        ("HTTP://LocalHost/", "http://localhost:80/"),
    ],
)
async def test_a_page_of_this_machine_is_accepted(shared_server: Server, url: str, stored: str) -> None:
    session = await shared_server.new_session()
    assert (await add(shared_server, session["id"], url=url))["url"] == stored
    await shared_server.call("DELETE", f"/api/sessions/{session['id']}?purge=true")


@session_loop
@pytest.mark.parametrize(
    "url",
    [
        *(
            "https://localhost:1/",
            "http://example.org/",
            "http://10.0.0.1/",
            "javascript:alert(1)",
            "file:///etc",
        ),
        *(
            "http://localhost:1@example.org/",
            "http://localhost.example.org/",
            "//localhost:1/",
            "localhost:1",
            " ",
        ),
        *("http://localhost:99999/", "http://localhost:x/", "http://[::1", "http://localhost:1/\u202e"),
        *("http://localhost:1/a b", f"http://localhost:1/{'x' * 2000}", "http://local\nhost:1/"),
    ],
)
async def test_any_other_url_is_refused(shared_server: Server, url: str) -> None:
    session = await shared_server.new_session()
    assert (await add(shared_server, session["id"], 400, url=url))["error"] == "invalid"
    await shared_server.call("DELETE", f"/api/sessions/{session['id']}?purge=true")


@session_loop
async def test_only_a_web_worker_has_a_url_and_it_needs_one(shared_server: Server) -> None:
    session = await shared_server.new_session()
    assert "needs the address" in (await add(shared_server, session["id"], 400))["message"]
    refused = await add(shared_server, session["id"], 400, type="diff", url="http://localhost:1/")
    assert "only a web worker" in refused["message"]
    await shared_server.call("DELETE", f"/api/sessions/{session['id']}?purge=true")


@session_loop
async def test_a_web_worker_in_a_role_is_restarted_or_replaced_by_another_page(shared_server: Server) -> None:
    conversation = SessionClient(shared_server, await shared_server.new_session())
    first = await add(shared_server, conversation.id, url="http://localhost:1/", role="page")
    workers = f"{conversation.path}/workers"
    await shared_server.worker_in(conversation.id, first["id"], "active")
    assert (await add(shared_server, conversation.id, 409, url="http://localhost:1/", role="page"))["error"]
    await shared_server.call("DELETE", f"{workers}/{first['id']}", 200)
    other = await add(shared_server, conversation.id, url="http://localhost:2/", role="page")
    assert (other["id"] != first["id"], other["url"]) == (True, "http://localhost:2/")
    await shared_server.call("DELETE", conversation.path)


async def test_a_saved_web_worker_is_imported_and_one_without_a_page_is_left_out(server: Server) -> None:
    time = "2025-01-01T00:00:00.000Z"
    workers = [
        {"id": "a", "type": "web", "name": "Page", "url": "http://localhost:3000", "createdAt": time},
        {"id": "b", "type": "web", "name": "Nothing", "createdAt": time},
        {"id": "c", "type": "markdown", "name": "Notes", "filePath": "notes.md", "createdAt": time},
    ]
    entry = {"id": "s", "type": "quick", "locationPath": str(server.workspace), "createdAt": time}
    imported = await server.call("POST", "/api/import", 200, json=[entry | {"workers": workers}])
    (taken,) = imported["taken"]
    assert ["Nothing was left out: a web worker needs" in note for note in taken["notes"]] == [True]
    session = await server.call("GET", f"/api/sessions/{taken['sessionId']}")
    page, notes = session["workers"]
    assert (page["url"], page["state"], notes["filePath"]) == ("http://localhost:3000/", "exited", "notes.md")


async def test_the_command_line_starts_a_web_worker(server: Server) -> None:
    session = await server.new_session(title="with a page")
    bullpen = Bullpen(server.environment())
    done = await bullpen(
        "worker", "add", "with a page", "--type", "web", "--url", "http://localhost:5173/", "-q"
    )
    assert (await server.worker_in(session["id"], done.out.strip(), "active"))[
        "url"
    ] == "http://localhost:5173/"
    wrong = await bullpen("worker", "add", "with a page", "--type", "web")
    assert (wrong.code, wrong.err) == (2, "bullpen: a web worker needs the address of its page (url)\n")
