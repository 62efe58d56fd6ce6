"""On a terminal, the server also prints its login address as a QR code, if a phone can open it."""

import io
import json
import os
import pty
import re
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import segno

from support.forks import start_bullpen
from support.server import Server, end_processes_of
from web.clients import printed_login_line


@contextmanager
def serving_on_a_terminal(server: Server) -> Iterator[int]:
    """Run the server on a terminal; its output can be read from the descriptor."""
    master, slave = pty.openpty()
    with open(slave, "r+b", buffering=0) as terminal, open(os.devnull, "wb") as nothing:
        process = start_bullpen(["serve", "--no-open"], server.environment(), (terminal, terminal, nothing))
    try:
        yield master
    finally:
        process.kill()
        process.wait()
        os.close(master)
        end_processes_of(server.home)


def qr_code(url: str) -> str:
    drawn = io.StringIO()
    segno.make(url, micro=False).terminal(out=drawn, compact=True)
    return drawn.getvalue().strip("\n")


def printed_texts(descriptor: int) -> Iterator[str]:
    """Yield all output so far after each read, for at most 30 seconds."""
    text, deadline = "", time.monotonic() + 30
    while time.monotonic() < deadline:
        if select.select([descriptor], [], [], 0.1)[0]:
            text += os.read(descriptor, 65536).decode(errors="replace").replace("\r\n", "\n")
            yield text


async def test_an_address_that_a_phone_can_open_is_also_printed_as_a_qr_code(
    tmp_path: Path, workspace: Path
) -> None:
    behind_a_proxy = {"BULLPEN_ALLOWED_HOSTS": "bullpen.example", "BULLPEN_TRUSTED_PROXIES": "127.0.0.1"}
    server = Server(tmp_path / "home", workspace, behind_a_proxy)
    await server.http.aclose()
    with serving_on_a_terminal(server) as descriptor:
        for text in printed_texts(descriptor):
            address = re.search(r"Bullpen \S+ is at (\S+/#code=\S+)\n", text)
            if address and qr_code(address[1]) in text:
                return
    raise AssertionError(f"no QR code of the address in {text!r}")


async def test_a_loopback_address_is_not_printed_as_a_qr_code(tmp_path: Path, workspace: Path) -> None:
    server = Server(tmp_path / "home", workspace)
    await server.http.aclose()
    shown, stopped = "", False
    # The read fails with an OSError when the server has ended.
    with serving_on_a_terminal(server) as descriptor, suppress(OSError):
        for text in printed_texts(descriptor):
            shown = text
            if "/#code=" in shown and not stopped:
                os.kill(json.loads((server.home / "server.json").read_text())["pid"], signal.SIGTERM)
                stopped = True
    assert stopped
    assert "█" not in shown


def test_the_qr_code_fits_a_terminal() -> None:
    rows = qr_code("https://a-rather-long-name.of-a-machine.example:65535/#code=bpc_" + "x" * 22).splitlines()
    assert len(rows) <= 24 and max(map(len, rows)) <= 80


@pytest.mark.asyncio(loop_scope="session")
async def test_output_to_a_file_has_the_address_without_a_qr_code(shared_server: Server) -> None:
    await printed_login_line(shared_server)
    assert "█" not in shared_server.output()
