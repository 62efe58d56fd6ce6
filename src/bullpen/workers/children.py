"""The children a keeper runs for us, as objects one can wait on.

The keeper speaks of (worker, run); this file turns its notices into growing recordings and its exits
into futures, and knows how a child is ended for good.
"""

import asyncio
import errno
import hashlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import structlog

from ..domain.errors import BullpenError, Conflict, RemoteFault, Unavailable
from ..domain.failures import FAILURES, explain
from ..keeper.client import ChildKey, ExitRecord, Keeper, KeeperFault, KeeperLost, Keepers
from ..keeper.marker import find_marked, marker
from ..log.recording import Recording

log = structlog.get_logger()
T = TypeVar("T")

SCREEN_WRITER = "screen"  # the emulator's name as a writer
ACP_WRITER = "acp"  # the ACP worker's
TRY_AGAIN = 0.1  # seconds until an agent that does not listen is spoken to again
_LOOKS = 3  # for what a child left behind, at most
PATIENCE = 5.0  # seconds between asking a child to end and ending it


class ChildEnd(NamedTuple):
    """How a child ended; `lost` when its keeper died with it."""

    code: int | None
    signal: str | None
    lost: bool = False


class ChildStart(NamedTuple):
    """Everything a keeper needs to start a child."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    cols: int = 80
    rows: int = 24
    tty: bool = True


class ChildHandle:
    """A process with a recording: told by number, read by offset, ended by a ladder."""

    def __init__(self, key: ChildKey, home_id: str, keeper: Keeper, recording: Recording) -> None:
        self.worker_id, self.run = key
        self.pid = 0
        self.written = 0  # lines of the ACP worker that the agent was given before we adopted it
        self.answered = 0  # replies of the screen that the program was given before we adopted it
        self.recording = recording
        self.ended: asyncio.Future[ChildEnd] = asyncio.get_running_loop().create_future()
        self._home_id = home_id
        self._keeper = keeper

    def write(self, writer: str, n: int, data: bytes) -> asyncio.Future[int]:
        """Hands numbered bytes to the child, in the order of the calls; done when the keeper has them.

        By the number the keeper knows what it has had before.
        """
        return self._keeper.write(self.worker_id, self.run, writer, n, data)

    def answer(self, n: int, data: bytes) -> None:
        """Types the screen's reply to what the program asked; one that just ended needs none."""
        with suppress(KeeperLost):
            _let_go(self._keeper.write(self.worker_id, self.run, SCREEN_WRITER, n, data))

    async def take(self, n: int, line: bytes) -> int:
        """Hands a numbered line to an agent, however long it takes to listen; the last number it has."""
        while True:
            try:
                return await self._keeper.write(self.worker_id, self.run, ACP_WRITER, n, line)
            except KeeperFault as fault:
                if fault.errno != errno.EAGAIN:  # too much waits for it already
                    raise refusal(fault) from fault
            except KeeperLost as lost:
                raise refusal(lost) from lost
            await asyncio.sleep(TRY_AGAIN)

    async def consume(self, offset: int) -> None:
        """What was said up to here is in the log; the keeper need not keep it."""
        with suppress(Conflict, RemoteFault, Unavailable):
            await _ask(self._keeper.consumed(self.worker_id, self.run, offset))

    async def close_input(self) -> None:
        """Says that nothing more will be said."""
        if not self.ended.done():
            with suppress(Conflict, RemoteFault, Unavailable):
                await _ask(self._keeper.close_input(self.worker_id, self.run))

    def resize(self, cols: int, rows: int, done: Callable[[], None]) -> None:
        """Sets the window's size and says when it is so; a program that just ended has none."""
        with suppress(KeeperLost):
            asked = self._keeper.resize(self.worker_id, self.run, cols, rows)
            _let_go(asked)
            asked.add_done_callback(lambda _: done())

    async def acknowledge(self) -> None:
        """The end is in the log: the keeper may forget the child; one that is gone has."""
        with suppress(Conflict, RemoteFault):
            await _ask(self._keeper.ack_exit(self.worker_id, self.run))

    async def stop(self, patience: float = PATIENCE) -> ChildEnd:
        """Hang up and TERM, five seconds, KILL, then whatever still carries our marker.

        Nobody reads an agent's last words then, and a keeper that kept more than so many would wait for that.
        """
        self.recording.watch(self._pass_over)
        self._pass_over()
        try:
            return await self._climb_down(patience)
        finally:
            self.recording.unwatch(self._pass_over)

    async def _climb_down(self, patience: float) -> ChildEnd:
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGCONT):
            await self._signal(number)
        try:
            async with asyncio.timeout(patience):
                ended = await asyncio.shield(self.ended)
        except TimeoutError:
            await self._signal(signal.SIGKILL)
            ended = await asyncio.shield(self.ended)
        await self._end_descendants()
        return ended

    async def _end_descendants(self) -> None:
        """Kill what the child left running, however long the machine has no descriptor to look for it."""
        while True:
            try:
                return await asyncio.to_thread(end_marked, self._home_id, [(self.worker_id, self.run)])
            except Exception as error:
                if explain(error) is None:
                    raise
                log.warning("cannot look for what a child left", worker=self.worker_id, reason=str(error))
            await asyncio.sleep(TRY_AGAIN)

    def _pass_over(self) -> None:
        if not self.ended.done():
            with suppress(KeeperLost):
                _let_go(self._keeper.consumed(self.worker_id, self.run, self.recording.end))

    async def _signal(self, number: signal.Signals) -> None:
        """Send a signal to the child's process group, again and again if the keeper cannot send it now."""
        while not self.ended.done():
            try:
                await _ask(self._keeper.signal(self.worker_id, self.run, number))
                return
            except (Conflict, RemoteFault):
                return
            except Unavailable:
                await asyncio.sleep(TRY_AGAIN)


class ChildHandles:
    """Every child of every keeper of this data directory."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.home_id = hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:16]
        self._children: dict[ChildKey, ChildHandle] = {}
        self._keepers: Keepers

    @classmethod
    @asynccontextmanager
    async def open(cls, home: Path) -> AsyncIterator["ChildHandles"]:
        """Connects to the keepers and adopts what they run."""
        self = cls(home)
        async with Keepers.open(home, self._on_output, self._on_exit, self._on_lost) as keepers:
            self._keepers = keepers
            for key, status in keepers.children.items():
                child = self._add(key, keepers.keeper_of(*key), Recording(self.spool(*key)))
                child.pid, child.answered = status.pid, status.writers.get(SCREEN_WRITER, 0)
                child.written = status.writers.get(ACP_WRITER, 0)
                if status.exit is not None:
                    self._on_exit(status.exit)
            yield self

    async def warm_up(self) -> None:
        """Start a keeper if none takes new children, so that the first child need not wait for that."""
        await _ask(self._keepers.accepting_keeper())

    def get(self, worker_id: str, run: int) -> ChildHandle | None:
        return self._children.get((worker_id, run))

    def all(self) -> list[ChildHandle]:
        return list(self._children.values())

    def spool(self, worker_id: str, run: int, stream: str = "out") -> Path:
        """Where the keeper writes what a run says."""
        return self._home / "spool" / worker_id / str(run) / stream

    @property
    def kept(self) -> bool:
        """Whether a keeper is there to take new children."""
        return self._keepers.current is not None

    def marker(self, worker_id: str, run: int) -> str:
        """What a child carries in its environment, so that it can be found without its keeper."""
        return marker(self.home_id, worker_id, run)

    async def spawn(self, worker_id: str, run: int, start: ChildStart, recording: Recording) -> ChildHandle:
        """Starts a child, or finds the one that was started under the same name before.

        An earlier run of the worker goes first: two agents would work in one conversation.
        """
        for earlier in self._before(worker_id, run):
            await self.bury(earlier)
        keeper = await _ask(self._keepers.accepting_keeper())
        # Known before it runs: its first words and its end may come together with its pid.
        child = self._add((worker_id, run), keeper, recording)
        try:
            spawned = await _ask(
                keeper.spawn(
                    worker_id,
                    run,
                    nonce=f"{worker_id}.{run}",
                    argv=start.argv,
                    env=dict(start.env),
                    cwd=start.cwd,
                    tty=start.tty,
                    cols=start.cols,
                    rows=start.rows,
                )
            )
        except BullpenError:
            self.forget(child)
            raise
        child.pid = spawned.pid
        return child

    async def forget_spool(self, worker_id: str) -> None:
        """Removes the recordings of a worker that runs no more."""
        keeper = await _ask(self._keepers.accepting_keeper())
        await _ask(keeper.remove_spools(worker_id))

    def forget(self, child: ChildHandle) -> None:
        self._children.pop((child.worker_id, child.run), None)
        child.recording.close()

    async def bury(self, child: ChildHandle) -> None:
        """Ends what runs and nobody wants, for whoever should have done so, perhaps in a server that died."""
        if not child.ended.done():
            await child.stop()
        await child.acknowledge()
        self.forget(child)

    def _before(self, worker_id: str, run: int) -> list[ChildHandle]:
        """The runs of a worker before this one that are still here, though their end is stored."""
        of_worker = [child for child in self._children.values() if child.worker_id == worker_id]
        return [child for child in of_worker if child.run < run]

    def _add(self, key: ChildKey, keeper: Keeper, recording: Recording) -> ChildHandle:
        child = ChildHandle(key, self.home_id, keeper, recording)
        self._children[key] = child
        return child

    def _on_output(self, worker: str, run: int, stream: str, end: int, last: bytes) -> None:
        child = self._children.get((worker, run))
        if child is not None and stream == "out":
            child.recording.grow(end, last)

    def _on_exit(self, exited: ExitRecord) -> None:
        key = (exited.worker, exited.run)
        child = self._children.get(key)
        if child is not None:
            child.recording.grow(exited.ends.get("out", 0))
        self._settle(key, ChildEnd(exited.code, _signal_name(exited.signal)))

    def _on_lost(self, keys: list[ChildKey]) -> None:
        for worker, run in keys:
            log.error("keeper lost", worker=worker, run=run)
        try:
            ending = asyncio.get_running_loop().run_in_executor(None, end_marked, self.home_id, keys)
        except RuntimeError as error:  # no thread can be started
            self._settle_lost(keys, error)
        else:
            ending.add_done_callback(
                lambda done: self._settle_lost(keys, None if done.cancelled() else done.exception())
            )

    def _settle_lost(self, keys: list[ChildKey], error: BaseException | None) -> None:
        """Mark the children of a lost keeper as ended, so that their next run may begin."""
        if error:
            log.error("what a lost keeper left could not be ended", exc_info=error)
        for key in keys:
            self._settle(key, ChildEnd(None, None, lost=True))

    def _settle(self, key: ChildKey, ended: ChildEnd) -> None:
        child = self._children.get(key)
        if child is not None and not child.ended.done():
            child.ended.set_result(ended)


def end_marked(home_id: str, keys: Collection[ChildKey]) -> None:
    """Kills what children left behind in process groups of their own, and what that forked meanwhile.

    Looks at every process of the machine: not for the loop.
    """
    for _ in range(_LOOKS):
        left = [pid for pid, worker, run in find_marked(home_id) if (worker, run) in keys]
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            break


def _let_go(request: asyncio.Future[T]) -> None:
    """Nobody waits for this answer, whatever it is."""
    request.add_done_callback(lambda done: done.cancelled() or done.exception())


async def _ask(request: Awaitable[T]) -> T:
    """What a keeper refuses comes in our words."""
    try:
        return await request
    except (KeeperFault, KeeperLost) as error:
        raise refusal(error) from error


def refusal(error: BaseException) -> BullpenError:
    """Return the error a user sees when a keeper refused a request or is gone."""
    if isinstance(error, KeeperFault):
        return Unavailable(error.message) if error.errno in FAILURES else Conflict(error.message)
    return RemoteFault("the keeper of this worker is gone")


def _signal_name(number: int | None) -> str | None:
    if not number:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:  # one of those for real time, which have no names
        return f"SIGRTMIN{number - signal.SIGRTMIN:+d}"
