"""Files of a workspace over REST: all of them, and nothing outside (S-10)."""

import asyncio
import os
import socket
from pathlib import Path

import pytest
import pytest_asyncio

from support.server import TOKEN, Server

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def files(house: Server, tmp_path: Path) -> str:
    """The route of a fresh workspace beside which a secret lies."""
    place = house.workspace / tmp_path.name
    (place / "inner").mkdir(parents=True)
    (place.parent / f"{tmp_path.name}-sibling").mkdir()
    (place.parent / f"{tmp_path.name}-sibling" / "secret").write_text("sesame")
    (place.parent / "secret").write_text("sesame")
    (place / "inner" / "page.html").write_text("<script>alert(1)</script>")
    (place / "data.bin").write_bytes(b"\0\1\2")
    os.symlink("inner/page.html", place / "link-in")
    os.symlink("../secret", place / "link-out")
    os.symlink("..", place / "up")
    os.symlink("/etc", place / "etc")
    os.mkfifo(place / "pipe")
    session = await house.new_session(locationPath=str(place))
    return f"/api/sessions/{session['id']}/files"


async def test_a_file_comes_as_text_and_never_as_a_page(house: Server, files: str) -> None:
    answer = await house.http.get(f"{files}/inner/page.html")
    assert answer.text == "<script>alert(1)</script>"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"] == "attachment"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert (await house.http.get(f"{files}/link-in")).text == answer.text
    binary = await house.http.get(f"{files}/data.bin")
    assert (binary.content, binary.headers["content-type"]) == (b"\0\1\2", "application/octet-stream")


async def test_directories_are_listed_with_what_is_in_them(house: Server, files: str) -> None:
    listing = await house.call("GET", files)
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
    inner = await house.call("GET", f"{files}/inner")
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
async def test_s10_no_path_leads_out(house: Server, files: str, path: str) -> None:
    status, body = await asyncio.to_thread(raw_get, house.port, f"{files}/{path}")
    assert status in (400, 403, 404), body[:200]
    assert b"sesame" not in body
    assert b"root:" not in body


async def test_s10_a_sibling_with_the_same_beginning_is_outside(house: Server, files: str) -> None:
    session = await house.call("GET", files.removesuffix("/files"))
    name = Path(session["locationPath"]).name
    status, body = await asyncio.to_thread(raw_get, house.port, f"{files}/../{name}-sibling/secret")
    assert status in (403, 404), body


def raw_get(port: int, target: str) -> tuple[int, bytes]:
    """A request whose path nobody tidies up on the way."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        head = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        connection.sendall(head.encode() + b"Connection: close\r\n\r\n")
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return int(answer.split(b" ", 2)[1]), answer
