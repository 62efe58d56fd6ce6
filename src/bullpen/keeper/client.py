"""The server's side: finds the keepers of a home, starts one when none takes new children, watches all."""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from .frames import VERSION
from .remote import (
    ChildStatus,
    ExitRecord,
    Keeper,
    KeeperFault,
    KeeperLost,
    Key,
    OnExit,
    OnOutput,
    SpawnedChild,
)

__all__ = [
    "ChildStatus",
    "ExitRecord",
    "Keeper",
    "KeeperFault",
    "KeeperLost",
    "Keepers",
    "Key",
    "SpawnedChild",
]

OnLost = Callable[[list[Key]], None]

_ANSWER_WITHIN = 10.0  # seconds
_POLL = 0.02
# without site-packages, which cost memory; our path goes last, so that nothing in it hides a standard module
_BOOT = "import sys; sys.path.append(sys.argv.pop(1)); from bullpen.keeper.__main__ import main; main()"
_PASSED_ON = ("LD_LIBRARY_PATH", "BULLPEN_KEEPER_PATIENCE")


class Keepers:
    """All keepers of a home: one takes new children, older ones keep theirs until the last has ended."""

    def __init__(self, home: Path, on_output: OnOutput, on_exit: OnExit, on_lost: OnLost) -> None:
        self.current: Keeper | None = None
        self.children: dict[Key, ChildStatus] = {}  # as they were when we connected
        self._directory = home / "keeper"
        self._home = home
        self._on_output = on_output
        self._on_exit = on_exit
        self._on_lost = on_lost
        self._all: set[Keeper] = set()
        self._starting = asyncio.Lock()
        self._held: list[Callable[[], None]] | None = []  # calls back that came before the caller was ready

    @classmethod
    @asynccontextmanager
    async def open(
        cls, home: Path, on_output: OnOutput, on_exit: OnExit, on_lost: OnLost
    ) -> AsyncIterator[Keepers]:
        """Connected to every living keeper; nothing is called back before the body first waits.

        Afterwards exits that nobody has acknowledged are told again, also those that `children` shows.
        """
        keepers = cls(home, on_output, on_exit, on_lost)
        try:
            for name in keepers._names():
                await keepers._connect_if_alive(name)
            await keepers.accepting()
            asyncio.get_running_loop().call_soon(keepers._release)
            yield keepers
        finally:
            keepers._on_lost = lambda _: None
            for keeper in tuple(keepers._all):
                await keeper.close()

    async def accepting(self) -> Keeper:
        """The keeper that takes new children, started when there is none."""
        async with self._starting:
            if self.current is None:
                name = secrets.token_hex(4)
                await _start(self._home, name)
                await self._connect(name)
            assert self.current is not None
            return self.current

    async def spawn(self, worker: str, run: int, **how: Any) -> SpawnedChild:
        """As `Keeper.spawn`, with the accepting one."""
        keeper = await self.accepting()
        return await keeper.spawn(worker, run, **how)

    def of(self, worker: str, run: int) -> Keeper:
        """The keeper that has this child."""
        for keeper in self._all:
            if (worker, run) in keeper.children:
                return keeper
        raise KeeperLost(f"no keeper has {worker}/{run}")

    def _names(self) -> list[str]:
        if not self._directory.is_dir():
            return []
        return sorted({path.stem for path in self._directory.iterdir() if path.suffix in (".lock", ".sock")})

    async def _connect_if_alive(self, name: str) -> None:
        deadline = asyncio.get_running_loop().time() + _ANSWER_WITHIN
        while True:
            try:
                return await self._connect(name)
            except (ConnectionError, FileNotFoundError, BlockingIOError, KeeperLost):
                if _remove_if_dead(self._directory, name):
                    return None
                if asyncio.get_running_loop().time() > deadline:
                    raise KeeperLost(f"keeper {name} lives but does not answer") from None
            await asyncio.sleep(_POLL)  # it is just starting, or just ending

    async def _connect(self, name: str) -> None:
        connected = _dial(self._directory, name)
        on_output = self._on_output if self._held is None else self._hold_output
        make = partial(Keeper, on_output, self._heard_exit)
        _, keeper = await asyncio.get_running_loop().create_unix_connection(make, sock=connected)
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                children = await keeper.greet()
        except TimeoutError:
            await keeper.close()
            raise KeeperLost(f"keeper {name} does not answer") from None
        self._all.add(keeper)
        self.children |= {(child.worker, child.run): child for child in children}
        keeper.closed.add_done_callback(lambda _: self._gone(keeper))
        if self.current is None and keeper.version == VERSION:
            self.current = keeper
        else:
            await keeper.retire()

    def _gone(self, keeper: Keeper) -> None:
        self._all.discard(keeper)
        if self.current is keeper:
            self.current = None
        if keeper.children:
            self._call_back(partial(self._on_lost, sorted(keeper.children)))

    def _hold_output(self, worker: str, run: int, stream: str, end: int, last: bytes) -> None:
        self._call_back(partial(self._on_output, worker, run, stream, end, last))

    def _heard_exit(self, exit_: ExitRecord) -> None:
        self._call_back(partial(self._on_exit, exit_))

    def _call_back(self, call: Callable[[], None]) -> None:
        if self._held is None:
            call()
        else:
            self._held.append(call)

    def _release(self) -> None:
        held, self._held = self._held or [], None
        for keeper in self._all:
            keeper.on_output = self._on_output
        for call in held:
            try:
                call()
            except Exception as error:  # noqa: BLE001 (of one child: the others are told all the same)
                about = {"message": "a notice of a keeper was not understood", "exception": error}
                asyncio.get_running_loop().call_exception_handler(about)


async def _start(home: Path, name: str) -> None:
    root = str(Path(__file__).parents[2])
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, root, home, name,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={variable: os.environ[variable] for variable in _PASSED_ON if variable in os.environ},
    )  # fmt: skip
    _, reason = await process.communicate()
    if process.returncode != 0:
        raise KeeperLost(f"no keeper could be started: {reason.decode(errors='replace').strip()}")


def _dial(directory: Path, name: str) -> socket.socket:
    """Through the directory's descriptor: the path itself may be too long for a socket address."""
    connected = socket.socket(socket.AF_UNIX)
    connected.setblocking(False)
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        connected.connect(f"/proc/self/fd/{fd}/{name}.sock")
    except OSError:
        connected.close()
        raise
    finally:
        os.close(fd)
    return connected


def _remove_if_dead(directory: Path, name: str) -> bool:
    """A keeper holds its lock as long as it lives."""
    lock = directory / f"{name}.lock"
    try:
        fd = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        fd = -1
    try:
        if fd >= 0:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        if fd >= 0:
            os.close(fd)
    for path in (lock.with_suffix(".sock"), lock):
        path.unlink(missing_ok=True)
    log = lock.with_suffix(".log")  # what a keeper died of is kept
    if log.exists() and log.stat().st_size == 0:
        log.unlink()
    return True
