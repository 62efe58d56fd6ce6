"""The login as a picture: on a terminal the printed address is also there for a phone's camera."""

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import segno

from support.server import Server, end_processes_of
from web.people import printed_line


@contextmanager
def serving_on_a_terminal(server: Server) -> Iterator[int]:
    """What the server prints can be read from the descriptor."""
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "bullpen", "serve", "--no-open"]
    process = subprocess.Popen(
        command, env=server.environment(), stdin=its, stdout=its, stderr=subprocess.DEVNULL
    )
    os.close(its)
    try:
        yield ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        end_processes_of(server.home)


def picture(url: str) -> str:
    drawn = io.StringIO()
    segno.make(url, micro=False).terminal(out=drawn, compact=True)
    return drawn.getvalue().strip("\n")


def printed(descriptor: int) -> Iterator[str]:
    """All that was printed so far, again and again, for a while."""
    text, deadline = "", time.monotonic() + 30
    while time.monotonic() < deadline:
        if select.select([descriptor], [], [], 0.1)[0]:
            text += os.read(descriptor, 65536).decode(errors="replace").replace("\r\n", "\n")
            yield text


async def test_an_address_that_a_phone_can_open_is_printed_as_a_picture_too(
    tmp_path: Path, workspace: Path
) -> None:
    behind_a_proxy = {"BULLPEN_ALLOWED_HOSTS": "bullpen.example", "BULLPEN_TRUSTED_PROXIES": "127.0.0.1"}
    server = Server(tmp_path / "home", workspace, behind_a_proxy)
    await server.http.aclose()
    with serving_on_a_terminal(server) as descriptor:
        for text in printed(descriptor):
            address = re.search(r"Bullpen \S+ is at (\S+/#code=\S+)\n", text)
            if address and picture(address[1]) in text:
                return
    raise AssertionError(f"no picture of the address in {text!r}")


async def test_an_address_that_only_this_machine_can_open_is_not_printed_as_a_picture(
    tmp_path: Path, workspace: Path
) -> None:
    server = Server(tmp_path / "home", workspace)
    await server.http.aclose()
    shown, stopped = "", False
    with serving_on_a_terminal(server) as descriptor, suppress(OSError):  # when the server has ended
        for text in printed(descriptor):
            shown = text
            if "/#code=" in shown and not stopped:
                os.kill(json.loads((server.home / "server.json").read_text())["pid"], signal.SIGTERM)
                stopped = True
    assert stopped
    assert "█" not in shown


def test_the_picture_fits_a_terminal() -> None:
    rows = picture("https://a-rather-long-name.of-a-machine.example:65535/#code=bpc_" + "x" * 22).splitlines()
    assert len(rows) <= 24 and max(map(len, rows)) <= 80


@pytest.mark.asyncio(loop_scope="session")
async def test_a_file_gets_the_address_only(house: Server) -> None:
    await printed_line(house)
    assert "█" not in house.output()
