"""The output that a viewer of a run is sent, in bursts, and its heartbeats."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bullpen.keeper.spool import SpoolWriter
from bullpen.log.recording import Recording
from bullpen.web.sockets import run_stream
from bullpen.web.sockets.admission import AdmittedSocket
from bullpen.web.sockets.output_formats import BinaryFormat
from bullpen.web.sockets.run_stream import MAX_BURST_BYTES, RunStream
from bullpen.web.websocket import Frame
from bullpen.workers.query_scanner import READ_BYTES
from bullpen.workers.terminal import TerminalWorker
from bullpen.workers.window import TerminalWindow, WindowSize
from support.intervals import shortened


class FakeSocket:
    """A socket that accepts all frames at once."""

    def __init__(self) -> None:
        self.accepted_bytes = 0
        self.pushed: list[bytes] = []

    async def send(self, message: dict[str, Any]) -> None:
        assert message["type"] == "size"

    async def send_frame(self, frame: Frame) -> None:
        self.accepted_bytes += len(frame[1]) if len(frame) > 1 else 0

    def push(self, frame: Frame) -> bool:
        self.pushed.append(b"".join(frame))
        return True


def recording_of(directory: Path, size: int) -> Recording:
    writer = SpoolWriter(os.open(directory, os.O_RDONLY))
    writer.append(bytes(size))
    writer.close()
    return Recording(directory)


def start_stream(recording: Recording, socket: FakeSocket) -> asyncio.Task[None]:
    terminal = SimpleNamespace(
        worker=SimpleNamespace(run=1),
        recording=recording,
        window=TerminalWindow(WindowSize(80, 24)),
        ended=None,
        replaced=False,
        activity=None,
        add_watcher=lambda _: None,
        remove_watcher=lambda _: None,
    )
    stream = RunStream("one", cast(AdmittedSocket, socket), cast(TerminalWorker, terminal), BinaryFormat())
    return asyncio.create_task(stream.run(after=0))


async def test_a_viewer_that_is_behind_gets_one_burst_before_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_stream, "PAUSE_SECONDS", 3600)
    socket = FakeSocket()
    task = start_stream(recording_of(tmp_path, 4 * MAX_BURST_BYTES), socket)
    for _ in range(10):
        await asyncio.sleep(0)
    assert socket.accepted_bytes == MAX_BURST_BYTES >= READ_BYTES
    task.cancel()


async def test_a_viewer_gets_all_output_after_the_pauses(tmp_path: Path) -> None:
    socket = FakeSocket()
    task = start_stream(recording_of(tmp_path, 4 * MAX_BURST_BYTES), socket)
    async with asyncio.timeout(10):
        while socket.accepted_bytes < 4 * MAX_BURST_BYTES:
            await asyncio.sleep(0.001)
    task.cancel()


async def test_a_viewer_gets_new_output_before_other_watchers_of_the_recording(tmp_path: Path) -> None:
    writer = SpoolWriter(os.open(tmp_path, os.O_RDONLY))
    recording, socket = Recording(tmp_path), FakeSocket()
    pushed_counts: list[int] = []
    recording.watch(lambda: pushed_counts.append(len(socket.pushed)))
    task = start_stream(recording, socket)
    for _ in range(10):
        await asyncio.sleep(0)
    recording.watch(lambda: pushed_counts.append(len(socket.pushed)))
    recording.grow(writer.append(b"echo"), b"echo")
    assert pushed_counts == [1, 1]
    assert socket.pushed[0].endswith(b"echo")
    task.cancel()
    writer.close()


@pytest.fixture
def quick_heartbeat() -> Iterator[None]:
    with shortened(heartbeat=0.01):
        yield


@pytest.mark.usefixtures("quick_heartbeat")
async def test_an_idle_viewer_gets_heartbeats_until_its_stream_ends(tmp_path: Path) -> None:
    socket = FakeSocket()
    task = start_stream(recording_of(tmp_path, 1), socket)
    async with asyncio.timeout(10):
        while len(socket.pushed) < 3:
            await asyncio.sleep(0.001)
    assert {frame[2:] for frame in socket.pushed} == {b'{"type":"heartbeat"}'}
    task.cancel()
    await asyncio.wait([task])
    before = len(socket.pushed)
    await asyncio.sleep(0.05)
    assert len(socket.pushed) == before
