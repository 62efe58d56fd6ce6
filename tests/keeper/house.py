"""A home with real keepers and real children, and everything a server would be told about them."""

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

PATIENCE = 60.0
ROOT = str(Path(sys.modules["bullpen"].__path__[0]).parent)


def run_keeper(
    home: Path, name: str, version: int = VERSION, **env: str
) -> "subprocess.CompletedProcess[str]":
    """Started by hand, of any version."""
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
        timeout=PATIENCE,
        check=False,
    )


async def until(condition: Callable[[], object], what: str = "the condition") -> None:
    """Waits for a fact, not for time."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.002)
    except TimeoutError:
        raise AssertionError(f"{what} did not come true in {PATIENCE} s") from None


def gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


class House:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.ends: dict[tuple[str, int, str], int] = {}
        self.exits: dict[ChildKey, ExitRecord] = {}
        self.lost: list[ChildKey] = []
        self.told = b""  # by notices themselves
        self.pids: set[int] = set()
        self.keepers: Keepers
        self._keeper_pids: set[int] = set()

    @property
    def keeper(self) -> Keeper:
        assert self.keepers.current is not None
        return self.keepers.current

    @asynccontextmanager
    async def server(self) -> AsyncIterator[Keepers]:
        """Connected like a server, with nothing known from before."""
        self.ends.clear()
        self.exits.clear()
        async with Keepers.open(self.home, self._output, self._exit, self.lost.extend) as self.keepers:
            self._keeper_pids |= {keeper.pid for keeper in self.keepers._keepers}
            yield self.keepers

    async def spawn(
        self, argv: str | list[str], worker: str = "w", run: int = 1, *, tty: bool = True, **how: Any
    ) -> SpawnedChild:
        """A child that runs a line of shell, or any program."""
        how = {"nonce": f"{worker}.{run}", "env": {"PATH": os.environ["PATH"]}, "cwd": "/", **how}
        words = ["sh", "-c", argv] if isinstance(argv, str) else argv
        spawned = await self.keepers.spawn(worker, run, argv=words, tty=tty, **how)
        self.pids.add(spawned.pid)
        self._keeper_pids.add(self.keeper.pid)
        return spawned

    async def python(self, source: str, worker: str = "w", run: int = 1, **how: Any) -> SpawnedChild:
        return await self.spawn([sys.executable, "-I", "-S", "-c", source], worker, run, **how)

    async def exited(self, worker: str = "w", run: int = 1) -> ExitRecord:
        await until(lambda: (worker, run) in self.exits, f"the exit of {worker}/{run}")
        return self.exits[worker, run]

    async def says(self, text: bytes, worker: str = "w", run: int = 1, stream: str = "out") -> bytes:
        """What a child has said once it has said `text`."""
        await until(lambda: text in self.said(worker, run, stream), f"{text!r}")
        return self.said(worker, run, stream)

    def said(self, worker: str = "w", run: int = 1, stream: str = "out") -> bytes:
        """All that is kept of what a child said."""
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
        """Ends what was started here and nothing else."""
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        for pid in self._keeper_pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _output(self, worker: str, run: int, stream: str, end: int, last: bytes) -> None:
        assert end > self.ends.get((worker, run, stream), -1), "a notice always brings something new"
        self.ends[worker, run, stream] = end
        if last:
            self.told += last
            reader = self.reader(worker, run, stream)
            assert reader.read(end - len(last), len(last)) == last, "what a notice says stands in the spool"

    def _exit(self, exit_: ExitRecord) -> None:
        self.exits[exit_.worker, exit_.run] = exit_
