"""Start, adopt and end the child processes of workers, which the keepers run for the server.

A keeper names a child by worker and run. This module turns its notices into growing recordings and its exits
into futures, and ends a child together with every process it has left behind.
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
from ..domain.limits import NO_LIMITS, ResourceLimits, describe_excess, find_offenders
from ..domain.snapshot import Worker
from ..intervals import intervals
from ..keeper.client import ChildKey, ExitRecord, Keeper, KeeperFault, KeeperLost, Keepers
from ..keeper.marker import find_marked, marker
from ..log.recording import Recording
from ..sandbox.cgroups import ControlGroups, RunGroup
from ..sandbox.command import sandboxed_command
from ..sandbox.process_tree import end_tree
from ..sandbox.processes import signal_program
from ..sandbox.profile import Profile
from ..sandbox.run_limits import RunLimits

log = structlog.get_logger()
T = TypeVar("T")

SCREEN_WRITER = "screen"  # writer name of the terminal emulator
ACP_WRITER = "acp"  # writer name of the ACP worker
RETRY_SECONDS = 0.1  # until a request that the keeper could not perform is sent again
_SIGNAL_BASE = 128  # added to a signal's number in an exit code
_MAX_SEARCHES = 3  # for processes that a child left behind


class ChildEnd(NamedTuple):
    """How a child ended. `lost` means that its keeper died, so the exit status is unknown.

    `excess` is the reason if the child was ended because it used too much.
    """

    code: int | None
    signal: str | None
    lost: bool = False
    excess: str | None = None


class ChildSpec(NamedTuple):
    """The program, environment, directory, sandbox and terminal of a child that is to be started."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    sandbox: Profile
    cols: int = 80
    rows: int = 24
    tty: bool = True


class ChildHandle:
    """A child process of a keeper: write to it by number, read its recording by offset, stop it."""

    def __init__(self, key: ChildKey, home_id: str, keeper: Keeper, recording: Recording) -> None:
        self.worker_id, self.run = key
        self.pid = 0
        self.lines_written = 0  # ACP lines that the agent was sent before this server adopted it
        self.replies_written = 0  # replies of the screen that were typed before this server adopted it
        self.recording = recording
        self.ended: asyncio.Future[ChildEnd] = asyncio.get_running_loop().create_future()
        self.group: RunGroup | None = None  # its control group
        self.excess: str | None = None  # why it is being ended
        self._home_id = home_id
        self._keeper = keeper

    def write(self, writer: str, n: int, data: bytes) -> asyncio.Future[int]:
        """Send numbered input to the child in the order of the calls; the result is the last accepted number.

        The keeper ignores a number that it has accepted before.
        """
        return self._keeper.write(self.worker_id, self.run, writer, n, data)

    def type_reply(self, n: int, data: bytes) -> None:
        """Send the screen's reply to a query of the program; ignore errors, since it may just have ended."""
        with suppress(KeeperLost):
            _ignore_result(self._keeper.write(self.worker_id, self.run, SCREEN_WRITER, n, data))

    async def write_line(self, n: int, line: bytes) -> int:
        """Send a numbered line to an agent, again and again while its input queue is full.

        Return the last accepted number. Raise RemoteFault if the child or its keeper is gone.
        """
        while True:
            try:
                return await self._keeper.write(self.worker_id, self.run, ACP_WRITER, n, line)
            except KeeperFault as fault:
                if fault.errno != errno.EAGAIN:  # too much is queued for it already
                    raise translate_keeper_error(fault) from fault
            except KeeperLost as lost:
                raise translate_keeper_error(lost) from lost
            await asyncio.sleep(RETRY_SECONDS)

    async def consume(self, offset: int) -> None:
        """Let the keeper free the output up to this offset: its effects are in the log."""
        with suppress(Conflict, RemoteFault, Unavailable):
            await _translate_errors(self._keeper.consumed(self.worker_id, self.run, offset))

    async def close_input(self) -> None:
        """Close the standard input of the child."""
        if not self.ended.done():
            with suppress(Conflict, RemoteFault, Unavailable):
                await _translate_errors(self._keeper.close_input(self.worker_id, self.run))

    def resize(self, cols: int, rows: int, done: Callable[[], None]) -> None:
        """Set the size of the terminal, and call `done` when the keeper has set it."""
        with suppress(KeeperLost):
            resized = self._keeper.resize(self.worker_id, self.run, cols, rows)
            _ignore_result(resized)
            resized.add_done_callback(lambda _: done())

    async def acknowledge(self) -> None:
        """Let the keeper forget the child: its end is in the log."""
        with suppress(Conflict, RemoteFault):
            await _translate_errors(self._keeper.ack_exit(self.worker_id, self.run))

    async def stop(self, timeout: float | None = None) -> ChildEnd:
        """Send HUP and TERM, after the timeout KILL, and kill the processes that it left behind.

        Its output is marked as consumed meanwhile: the server may no longer read it, and an agent whose
        output is not consumed would block.
        """
        self.recording.watch(self._consume_all)
        self._consume_all()
        try:
            return await self._terminate_or_kill(intervals().stop if timeout is None else timeout)
        finally:
            self.recording.unwatch(self._consume_all)

    async def end_for_excess(self, reason: str) -> None:
        """Kill the child and everything it started, because it uses too much."""
        self.excess = reason
        await asyncio.to_thread(self._kill_all)

    def _kill_all(self) -> None:
        """Kill all processes of the child."""
        end_tree(self.pid)
        if self.group is not None:
            self.group.end()
        else:
            end_marked(self._home_id, [(self.worker_id, self.run)])

    async def _terminate_or_kill(self, timeout: float) -> ChildEnd:
        """Ask the child to end, kill it after the timeout, and end its descendants."""
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGCONT):
            await self._signal(number)
            if not self.ended.done():
                signal_program(self.pid, number)
        try:
            async with asyncio.timeout(timeout):
                ended = await asyncio.shield(self.ended)
        except TimeoutError:
            await self._signal(signal.SIGKILL)
            ended = await asyncio.shield(self.ended)
        await self._end_descendants()
        return ended

    async def _end_descendants(self) -> None:
        """Kill the processes that the child left behind; retry while no descriptor is free for the search."""
        while True:
            try:
                return await asyncio.to_thread(end_marked, self._home_id, [(self.worker_id, self.run)])
            except Exception as error:
                if explain(error) is None:
                    raise
                log.warning(
                    "cannot search for processes that a child left behind",
                    worker=self.worker_id,
                    reason=str(error),
                )
            await asyncio.sleep(RETRY_SECONDS)

    def _consume_all(self) -> None:
        """Mark all output as consumed."""
        if not self.ended.done():
            with suppress(KeeperLost):
                _ignore_result(self._keeper.consumed(self.worker_id, self.run, self.recording.end))

    async def _signal(self, number: signal.Signals) -> None:
        """Send a signal to the child's process group; retry while the keeper cannot send it."""
        while not self.ended.done():
            try:
                await _translate_errors(self._keeper.signal(self.worker_id, self.run, number))
                return
            except (Conflict, RemoteFault):
                return
            except Unavailable:
                await asyncio.sleep(RETRY_SECONDS)


class ChildHandles:
    """The children of all keepers of this data directory, by worker and run."""

    def __init__(self, home: Path, limits: ResourceLimits = NO_LIMITS) -> None:
        self._home = home
        self.home_id = hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:16]
        self.limits = RunLimits(limits, ControlGroups.find(group_name(self.home_id)))
        self._children: dict[ChildKey, ChildHandle] = {}
        self._keepers: Keepers

    @classmethod
    @asynccontextmanager
    async def open(cls, home: Path, limits: ResourceLimits = NO_LIMITS) -> AsyncIterator["ChildHandles"]:
        """Connect to the keepers and adopt their children; those that ended meanwhile have `ended` set."""
        self = cls(home, limits)
        async with Keepers.open(home, self._on_output, self._on_exit, self._on_lost) as keepers:
            self._keepers = keepers
            for key, status in keepers.children.items():
                child = self._add(key, keepers.keeper_of(*key), Recording(self.spool(*key)))
                child.pid, child.replies_written = status.pid, status.writers.get(SCREEN_WRITER, 0)
                child.lines_written = status.writers.get(ACP_WRITER, 0)
                child.group = self.limits.find(_run_name(*key))
                if status.exit is not None:
                    self._on_exit(status.exit)
            self.limits.sweep()
            yield self

    async def warm_up(self) -> None:
        """Start a keeper if none takes new children, so that the first child need not wait for that."""
        await _translate_errors(self._keepers.accepting_keeper())

    def get(self, worker_id: str, run: int) -> ChildHandle | None:
        """Return the child of a run, or None if no keeper has it."""
        return self._children.get((worker_id, run))

    def all(self) -> list[ChildHandle]:
        """Return all children that are not forgotten, running or ended."""
        return list(self._children.values())

    def spool(self, worker_id: str, run: int, stream: str = "out") -> Path:
        """Return the directory of the spool of a run's output (`out` or `err`)."""
        return self._home / "spool" / worker_id / str(run) / stream

    @property
    def has_keeper(self) -> bool:
        """Whether a keeper is connected that accepts new children."""
        return self._keepers.current is not None

    def marker(self, worker_id: str, run: int) -> str:
        """Return the variable value in a child's environment by which it is found without its keeper."""
        return marker(self.home_id, worker_id, run)

    async def spawn(self, worker_id: str, run: int, spec: ChildSpec, recording: Recording) -> ChildHandle:
        """Start the child of a run, or return it if it was started before.

        Earlier runs of the worker are ended first: two agents would work in one conversation. This is the
        only place where a command is wrapped for a keeper, so that older keepers can run it too.
        """
        command = await sandboxed_command(spec.sandbox, spec.argv, spec.env, spec.cwd)
        for earlier in self._earlier_runs(worker_id, run):
            await self.end_and_forget(earlier)
        group = await self.limits.begin(spec.sandbox, _run_name(worker_id, run))
        argv = self.limits.command(spec.sandbox, command.argv, group)
        keeper = await _translate_errors(self._keepers.accepting_keeper())
        # Added before it runs: its first output and its exit may arrive together with its pid.
        child = self._add((worker_id, run), keeper, recording)
        child.group = group
        try:
            spawned = await _translate_errors(
                keeper.spawn(
                    worker_id,
                    run,
                    nonce=f"{worker_id}.{run}",
                    argv=argv,
                    env=command.env,
                    cwd=spec.cwd,
                    tty=spec.tty,
                    cols=spec.cols,
                    rows=spec.rows,
                )
            )
        except BullpenError:
            self.forget(child)
            raise
        child.pid = spawned.pid
        return child

    async def remove_spools(self, worker_id: str) -> None:
        """Remove the spools of all runs of a worker that has ended."""
        keeper = await _translate_errors(self._keepers.accepting_keeper())
        await _translate_errors(keeper.remove_spools(worker_id))

    def forget(self, child: ChildHandle) -> None:
        """Drop the handle of a child that has ended, and close its recording. The keeper is not told."""
        self._children.pop((child.worker_id, child.run), None)
        child.recording.close()
        if child.group is not None:
            self.limits.forget(child.group)

    async def end_and_forget(self, child: ChildHandle) -> None:
        """End a child that no worker needs, for example one whose server died, and forget it."""
        if not child.ended.done():
            await child.stop()
        await child.acknowledge()
        self.forget(child)

    def _earlier_runs(self, worker_id: str, run: int) -> list[ChildHandle]:
        """Return the children of earlier runs of a worker that are not forgotten yet."""
        of_worker = [child for child in self._children.values() if child.worker_id == worker_id]
        return [child for child in of_worker if child.run < run]

    def _add(self, key: ChildKey, keeper: Keeper, recording: Recording) -> ChildHandle:
        """Create the handle of a child and remember it."""
        child = ChildHandle(key, self.home_id, keeper, recording)
        self._children[key] = child
        return child

    def _on_output(self, worker: str, run: int, stream: str, end: int, last: bytes) -> None:
        """Note in the recording of a child that its output ends at `end`.

        `last` are the newest bytes, if the keeper sent them.
        """
        child = self._children.get((worker, run))
        if child is not None and stream == "out":
            child.recording.grow(end, last)

    def _on_exit(self, exited: ExitRecord) -> None:
        """Resolve the `ended` future of a child."""
        key = (exited.worker, exited.run)
        child = self._children.get(key)
        if child is not None:
            child.recording.grow(exited.ends.get("out", 0))
            excess = self._find_excess(child)
            self._set_ended(key, ChildEnd(exited.code, _signal_name(exited.signal), excess=excess))

    def _find_excess(self, child: ChildHandle) -> str | None:
        """Return why a child was ended that used too much: the kernel may be faster than the server."""
        if child.excess is not None or child.group is None:
            return child.excess
        found = find_offenders(self.limits.values, {child: child.group.usage()})
        return describe_excess(self.limits.values, found[child]) if child in found else None

    def _on_lost(self, keys: list[ChildKey]) -> None:
        """End the processes of children whose keeper has died, and mark the children as lost."""
        for worker, run in keys:
            log.error("keeper lost", worker=worker, run=run)
        try:
            ending = asyncio.get_running_loop().run_in_executor(None, end_marked, self.home_id, keys)
        except RuntimeError as error:  # no thread can be started
            self._mark_lost(keys, error)
        else:
            ending.add_done_callback(
                lambda done: self._mark_lost(keys, None if done.cancelled() else done.exception())
            )

    def _mark_lost(self, keys: list[ChildKey], error: BaseException | None) -> None:
        """Mark the children of a lost keeper as ended, so that their next run may begin."""
        if error:
            log.error("the children of a lost keeper could not be ended", exc_info=error)
        for key in keys:
            self._set_ended(key, ChildEnd(None, None, lost=True))

    def _set_ended(self, key: ChildKey, ended: ChildEnd) -> None:
        """Complete the `ended` future of a child, unless it is completed or the child is unknown."""
        child = self._children.get(key)
        if child is not None and not child.ended.done():
            child.ended.set_result(ended)


def end_marked(home_id: str, keys: Collection[ChildKey]) -> None:
    """Kill the processes with the markers of these children, and those they fork meanwhile.

    It searches all processes of the machine, so call it in a thread.
    """
    for _ in range(_MAX_SEARCHES):
        left = [pid for pid, worker, run in find_marked(home_id) if (worker, run) in keys]
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            break


def program_end(ended: ChildEnd, worker: Worker) -> ChildEnd:
    """Return how the program of a run ended: the sandbox reports the signal n as exit code 128 + n."""
    is_signal = ended.code is not None and _SIGNAL_BASE < ended.code <= _SIGNAL_BASE + signal.SIGRTMAX
    if worker.sandbox in (None, "open") or not is_signal:
        return ended
    return ended._replace(code=None, signal=_signal_name((ended.code or 0) - _SIGNAL_BASE))


def group_name(home_id: str) -> str:
    """Return the name of the control group of a data directory."""
    return f"bullpen-{home_id}"


def _run_name(worker_id: str, run: int) -> str:
    """Return the name of the control group of a run."""
    return f"{worker_id}.{run}"


def _ignore_result(request: asyncio.Future[T]) -> None:
    """Mark the result as retrieved, so that asyncio does not log an error that no caller awaits."""
    request.add_done_callback(lambda done: done.cancelled() or done.exception())


async def _translate_errors(request: Awaitable[T]) -> T:
    """Await a request, and raise a BullpenError if the keeper refuses it or is gone."""
    try:
        return await request
    except (KeeperFault, KeeperLost) as error:
        raise translate_keeper_error(error) from error


def translate_keeper_error(error: BaseException) -> BullpenError:
    """Return the error a user sees when a keeper refused a request or is gone."""
    if isinstance(error, KeeperFault):
        return Unavailable(error.message) if error.errno in FAILURES else Conflict(error.message)
    return RemoteFault("the keeper of this worker is gone")


def _signal_name(number: int | None) -> str | None:
    """Return the name of a signal number, such as SIGTERM; None for no signal."""
    if not number:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal, which has no name
        return f"SIGRTMIN{number - signal.SIGRTMIN:+d}"
