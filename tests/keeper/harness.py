"""A data directory with real keepers and children, and everything that a server receives from them."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from bullpen.keeper.client import ChildKey, ExitRecord, Keeper, Keepers, SpawnedChild
from bullpen.keeper.frames import VERSION
from bullpen.keeper.spool import SpoolReader

DEADLINE_SECONDS = 60.0
ROOT = str(Path(sys.modules["bullpen"].__path__[0]).parent)


def run_keeper(
    home: Path, name: str, version: int = VERSION, **env: str
) -> "subprocess.CompletedProcess[str]":
    """Start a keeper of any version, and wait until its start has succeeded or failed."""
    source = (
        "import bullpen.keeper.frames as frames; import sys;"
        "frames.VERSION = int(sys.argv.pop(1));"
        "from bullpen.keeper.__main__ import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", source, str(version), str(home), name],
        env=os.environ | {"PYTHONPATH": ROOT} | env,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


async def wait_until(condition: Callable[[], object], description: str = "the condition") -> None:
    """Wait until the condition is true, or fail with its description."""
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition():
                await asyncio.sleep(0.002)
    except TimeoutError:
        raise AssertionError(f"{description} did not become true in {DEADLINE_SECONDS} s") from None


def has_ended(pid: int) -> bool:
    """Return whether a process has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


class KeeperHarness:
    """Starts children with real keepers, and records what the keepers report about them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.ends: dict[tuple[str, int, str], int] = {}
        self.exits: dict[ChildKey, ExitRecord] = {}
        self.lost: list[ChildKey] = []
        self.noticed_output = b""  # output that notices themselves contained
        self.pids: set[int] = set()
        self.keepers: Keepers
        self._keeper_pids: set[int] = set()

    @property
    def keeper(self) -> Keeper:
        assert self.keepers.current is not None
        return self.keepers.current

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Keepers]:
        """Connect to the keepers as a server does after its start."""
        self.ends.clear()
        self.exits.clear()
        async with Keepers.open(self.home, self._on_output, self._on_exit, self.lost.extend) as self.keepers:
            self._keeper_pids |= {keeper.pid for keeper in self.keepers._keepers}
            yield self.keepers

    async def spawn(
        self, argv: str | list[str], worker: str = "w", run: int = 1, *, tty: bool = True, **options: Any
    ) -> SpawnedChild:
        """Start a child that runs a shell command (a string) or a program (a list)."""
        options = {"nonce": f"{worker}.{run}", "env": {"PATH": os.environ["PATH"]}, "cwd": "/", **options}
        words = ["sh", "-c", argv] if isinstance(argv, str) else argv
        spawned = await self.keepers.spawn(worker, run, argv=words, tty=tty, **options)
        self.pids.add(spawned.pid)
        self._keeper_pids.add(self.keeper.pid)
        return spawned

    async def python(self, source: str, worker: str = "w", run: int = 1, **options: Any) -> SpawnedChild:
        return await self.spawn([sys.executable, "-I", "-S", "-c", source], worker, run, **options)

    async def wait_for_exit(self, worker: str = "w", run: int = 1) -> ExitRecord:
        await wait_until(lambda: (worker, run) in self.exits, f"the exit of {worker}/{run}")
        return self.exits[worker, run]

    async def wait_for_output(
        self, text: bytes, worker: str = "w", run: int = 1, stream: str = "out"
    ) -> bytes:
        """Wait until the output of a child contains `text`, and return all its output."""
        await wait_until(lambda: text in self.output(worker, run, stream), f"{text!r}")
        return self.output(worker, run, stream)

    def output(self, worker: str = "w", run: int = 1, stream: str = "out") -> bytes:
        """Return the output of a child that its spool has."""
        reader = self.reader(worker, run, stream)
        pieces, offset = [], reader.start
        while piece := reader.read(offset, 1 << 20):
            pieces.append(piece)
            offset += len(piece)
        reader.close()
        return b"".join(pieces)

    def reader(self, worker: str = "w", run: int = 1, stream: str = "out") -> SpoolReader:
        return SpoolReader(self.home / "spool" / worker / str(run) / stream)

    def close(self) -> None:
        """Kill the children and keepers that were started here."""
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        for pid in self._keeper_pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _on_output(self, worker: str, run: int, stream: str, end: int, last: bytes) -> None:
        assert end > self.ends.get((worker, run, stream), -1), "a notice reported no growth"
        self.ends[worker, run, stream] = end
        if last:
            self.noticed_output += last
            reader = self.reader(worker, run, stream)
            assert reader.read(end - len(last), len(last)) == last, "a notice has other bytes than the spool"

    def _on_exit(self, exit_: ExitRecord) -> None:
        self.exits[exit_.worker, exit_.run] = exit_
