"""Connect the server to all keepers of its data directory, and start one if none accepts new children."""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from .frames import VERSION
from .remote import (
    ChildKey,
    ChildStatus,
    ExitRecord,
    Keeper,
    KeeperFault,
    KeeperLost,
    OnExit,
    OnOutput,
    SpawnedChild,
)

__all__ = [
    "ChildKey",
    "ChildStatus",
    "ExitRecord",
    "Keeper",
    "KeeperFault",
    "KeeperLost",
    "Keepers",
    "SpawnedChild",
]

OnLost = Callable[[list[ChildKey]], None]

_CONNECT_TIMEOUT = 10.0  # seconds
_POLL_INTERVAL = 0.02  # seconds
# Without site-packages, which cost memory. Bullpen's path is last, so that it hides no standard module.
_BOOT = "import sys; sys.path.append(sys.argv.pop(1)); from bullpen.keeper.__main__ import main; main()"
_INHERITED_VARIABLES = ("LD_LIBRARY_PATH", "BULLPEN_KEEPER_PATIENCE")


class Keepers:
    """All keepers of a data directory: the current one accepts new children, older ones keep theirs."""

    def __init__(self, home: Path, on_output: OnOutput, on_exit: OnExit, on_lost: OnLost) -> None:
        self.current: Keeper | None = None
        self.children: dict[ChildKey, ChildStatus] = {}  # as they were when the server connected
        self._directory = home / "keeper"
        self._home = home
        self._on_output = on_output
        self._on_exit = on_exit
        self._on_lost = on_lost
        self._keepers: set[Keeper] = set()
        self._starting = asyncio.Lock()
        self._held: list[Callable[[], None]] | None = []  # callbacks from before the caller was ready

    @classmethod
    @asynccontextmanager
    async def open(
        cls, home: Path, on_output: OnOutput, on_exit: OnExit, on_lost: OnLost
    ) -> AsyncIterator[Keepers]:
        """Connect to every living keeper. No callback is called before the body first awaits.

        Then every exit that is not acknowledged is reported again, also those that `children` shows.
        """
        keepers = cls(home, on_output, on_exit, on_lost)
        try:
            for name in keepers._keeper_names():
                await keepers._connect_if_alive(name)
            await keepers.accepting_keeper()
            asyncio.get_running_loop().call_soon(keepers._call_held)
            yield keepers
        finally:
            keepers._on_lost = lambda _: None
            for keeper in tuple(keepers._keepers):
                await keeper.close()

    async def accepting_keeper(self) -> Keeper:
        """Return the keeper that accepts new children; start one if there is none."""
        async with self._starting:
            if self.current is None:
                name = secrets.token_hex(4)
                await asyncio.to_thread(_start_keeper, self._home, name)
                await self._connect(name)
            assert self.current is not None
            return self.current

    async def spawn(self, worker: str, run: int, **options: Any) -> SpawnedChild:
        """Start a child with the keeper that accepts new children; see `Keeper.spawn`."""
        keeper = await self.accepting_keeper()
        return await keeper.spawn(worker, run, **options)

    def keeper_of(self, worker: str, run: int) -> Keeper:
        """Return the keeper that has this child; raise KeeperLost if none has."""
        for keeper in self._keepers:
            if (worker, run) in keeper.children:
                return keeper
        raise KeeperLost(f"no keeper has {worker}/{run}")

    def _keeper_names(self) -> list[str]:
        """Return the ids of all keepers that have a lock or a socket in the data directory."""
        if not self._directory.is_dir():
            return []
        return sorted({path.stem for path in self._directory.iterdir() if path.suffix in (".lock", ".sock")})

    async def _connect_if_alive(self, name: str) -> None:
        """Connect to a keeper that may be starting or ending; remove its files if it is dead.

        Raise KeeperLost if it lives and does not answer in time.
        """
        deadline = asyncio.get_running_loop().time() + _CONNECT_TIMEOUT
        while True:
            try:
                return await self._connect(name)
            except (ConnectionError, FileNotFoundError, BlockingIOError, KeeperLost):
                if _remove_if_dead(self._directory, name):
                    return None
                if asyncio.get_running_loop().time() > deadline:
                    raise KeeperLost(f"keeper {name} runs but does not answer") from None
            await asyncio.sleep(_POLL_INTERVAL)  # the keeper is starting or ending

    async def _connect(self, name: str) -> None:
        """Connect to a keeper and adopt its children; the first of this version becomes the current one.

        Raise KeeperLost if the keeper does not answer.
        """
        connected = _connect_socket(self._directory, name)
        on_output = self._on_output if self._held is None else self._hold_output
        make = partial(Keeper, on_output, self._on_keeper_exit)
        _, keeper = await asyncio.get_running_loop().create_unix_connection(make, sock=connected)
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT):
                children = await keeper.handshake()
        except TimeoutError:
            await keeper.close()
            raise KeeperLost(f"keeper {name} does not answer") from None
        self._keepers.add(keeper)
        self.children |= {(child.worker, child.run): child for child in children}
        keeper.closed.add_done_callback(lambda _: self._on_closed(keeper))
        if self.current is None and keeper.version == VERSION:
            self.current = keeper
        else:
            await keeper.retire()

    def _on_closed(self, keeper: Keeper) -> None:
        """Report the children of a keeper whose connection has ended as lost."""
        self._keepers.discard(keeper)
        if self.current is keeper:
            self.current = None
        if keeper.children:
            self._call_back(partial(self._on_lost, sorted(keeper.children)))

    def _hold_output(self, worker: str, run: int, stream: str, end: int, last: bytes) -> None:
        """Report new output; while `open` has not returned yet, delay the report until it has."""
        self._call_back(partial(self._on_output, worker, run, stream, end, last))

    def _on_keeper_exit(self, exit_: ExitRecord) -> None:
        """Report the exit of a child; while `open` has not returned yet, delay the report until it has."""
        self._call_back(partial(self._on_exit, exit_))

    def _call_back(self, call: Callable[[], None]) -> None:
        """Call now, or later if the caller of `open` is not ready."""
        if self._held is None:
            call()
        else:
            self._held.append(call)

    def _call_held(self) -> None:
        """Call the callbacks that were held until the caller of `open` was ready."""
        held, self._held = self._held or [], None
        for keeper in self._keepers:
            keeper.on_output = self._on_output
        for call in held:
            try:
                call()
            except Exception as error:  # noqa: BLE001 (the error of one child must not lose the other children)
                context = {"message": "a notice of a keeper could not be processed", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)


def _start_keeper(home: Path, name: str) -> None:
    """Start a keeper process, and wait until it accepts connections; raise KeeperLost if it fails."""
    root = str(Path(__file__).parents[2])
    started = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, root, home, name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
        env={variable: os.environ[variable] for variable in _INHERITED_VARIABLES if variable in os.environ},
    )
    if started.returncode != 0:
        raise KeeperLost(f"no keeper could be started: {started.stderr.decode(errors='replace').strip()}")


def _connect_socket(directory: Path, name: str) -> socket.socket:
    """Connect to a keeper's socket, whose full path may be too long for a socket address."""
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
    """Remove the files of a keeper that does not hold its lock; return False if it does, and so lives."""
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
    log = lock.with_suffix(".log")  # a log that says why a keeper died is kept
    if log.exists() and log.stat().st_size == 0:
        log.unlink()
    return True
