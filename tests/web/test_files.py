"""Files of a workspace over REST: each file inside it is served, and none outside."""

import asyncio
import os
import socket
from pathlib import Path

import pytest
import pytest_asyncio

from support.server import TOKEN, Server

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def files(shared_server: Server, tmp_path: Path) -> str:
    """Return the route of a new workspace whose parent and sibling directory contain a secret."""
    directory = shared_server.workspace / tmp_path.name
    (directory / "inner").mkdir(parents=True)
    (directory.parent / f"{tmp_path.name}-sibling").mkdir()
    (directory.parent / f"{tmp_path.name}-sibling" / "secret").write_text("sesame")
    (directory.parent / "secret").write_text("sesame")
    (directory / "inner" / "page.html").write_text("<script>alert(1)</script>")
    (directory / "data.bin").write_bytes(b"\0\1\2")
    os.symlink("inner/page.html", directory / "link-in")
    os.symlink("../secret", directory / "link-out")
    os.symlink("..", directory / "up")
    os.symlink("/etc", directory / "etc")
    os.mkfifo(directory / "pipe")
    session = await shared_server.new_session(locationPath=str(directory))
    return f"/api/sessions/{session['id']}/files"


async def test_a_file_is_served_as_text_and_never_as_a_page(shared_server: Server, files: str) -> None:
    answer = await shared_server.http.get(f"{files}/inner/page.html")
    assert answer.text == "<script>alert(1)</script>"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"] == "attachment"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert (await shared_server.http.get(f"{files}/link-in")).text == answer.text
    binary = await shared_server.http.get(f"{files}/data.bin")
    assert (binary.content, binary.headers["content-type"]) == (b"\0\1\2", "application/octet-stream")


async def test_directories_are_listed_with_their_entries(shared_server: Server, files: str) -> None:
    listing = await shared_server.call("GET", files)
    kinds = {entry["name"]: entry["type"] for entry in listing["entries"]}
    assert kinds == {
        "inner": "directory",
        "data.bin": "file",
        "etc": "link",
        "link-in": "link",
        "link-out": "link",
        "pipe": "other",
        "up": "link",
    }
    inner = await shared_server.call("GET", f"{files}/inner")
    assert inner == {
        "path": "inner",
        "entries": [{"name": "page.html", "type": "file", "size": 25}],
        "more": 0,
    }


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "inner/../../secret",
        "%2e%2e/secret",
        "%2e%2e%2fsecret",
        "%252e%252e%252fsecret",
        "..%5csecret",
        "..\\secret",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "//etc/passwd",
        "inner/page.html%00.png",
        "%00",
        "link-out",
        "up/secret",
        "up",
        "etc/passwd",
        "pipe",
        "nothing",
        "data.bin/x",
        "x" * 5000,
    ],
)
async def test_no_path_leads_out_of_the_workspace(shared_server: Server, files: str, path: str) -> None:
    status, body = await asyncio.to_thread(raw_get, shared_server.port, f"{files}/{path}")
    assert status in (400, 403, 404), body[:200]
    assert b"sesame" not in body
    assert b"root:" not in body


async def test_a_sibling_whose_name_begins_with_the_name_of_the_workspace_is_outside(
    shared_server: Server, files: str
) -> None:
    session = await shared_server.call("GET", files.removesuffix("/files"))
    name = Path(session["locationPath"]).name
    status, body = await asyncio.to_thread(raw_get, shared_server.port, f"{files}/../{name}-sibling/secret")
    assert status in (403, 404), body


def raw_get(port: int, target: str) -> tuple[int, bytes]:
    """Send a request with the path unchanged; an HTTP client would normalise it."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        head = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        connection.sendall(head.encode() + b"Connection: close\r\n\r\n")
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return int(answer.split(b" ", 2)[1]), answer
