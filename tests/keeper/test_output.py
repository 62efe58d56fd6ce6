"""Output of children: every byte is kept in order before the exit, and no child starves another."""

import asyncio
import operator
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from bullpen.keeper.client import KeeperFault
from bullpen.keeper.loop import EventLoop
from bullpen.keeper.spool import ENTRY_INTERVAL_NS, SpoolGone
from bullpen.keeper.stream import (
    FLOOD_READ_BYTES,
    FLOOD_WRITE_BYTES,
    MAX_FLOOD_READ_BYTES,
    MAX_UNCONSUMED_BYTES,
    PTY_PAGE_BYTES,
    READ_BYTES,
)
from keeper.harness import KeeperHarness, has_ended, wait_until
from keeper.pipe_streams import pipe_stream

RAW = "import os, tty; tty.setraw(1)\n"
BLOCK = 64 << 10


def lines(first: int, last: int) -> bytes:
    return b"".join(b"%09d\n" % number for number in range(first, last))


def print_lines(last: int, fd: int = 1) -> str:
    """Return a program that prints numbered lines as fast as it can."""
    return (
        f"import os\nfor i in range(0, {last}, 100):\n"
        f"    os.write({fd}, b''.join(b'%09d\\n' % n for n in range(i, i + 100)))\n"
    )


def print_blocks(count: int) -> str:
    """Return a program that prints blocks, each filled with its own number."""
    return (
        f"import os\nfor i in range({count}):\n    data = i.to_bytes(4, 'big') * {BLOCK // 4}\n"
        "    while data: data = data[os.write(1, data):]\n"
    )


def bytes_of_blocks(offset: int, size: int) -> bytes:
    first, last = offset // BLOCK, (offset + size) // BLOCK
    whole = b"".join(i.to_bytes(4, "big") * (BLOCK // 4) for i in range(first, last + 1))
    return whole[offset - first * BLOCK :][:size]


async def test_a_flood_on_a_terminal_is_stored_byte_for_byte(connected: KeeperHarness) -> None:
    await connected.python(RAW + print_lines(1_000_000))
    exit_ = await connected.wait_for_exit()
    assert exit_.code == 0
    assert exit_.ends == {"out": 10_000_000}
    assert connected.output() == lines(0, 1_000_000)


async def test_a_flood_that_stops_is_reported_up_to_its_last_byte(connected: KeeperHarness) -> None:
    """Bursts of all lengths are reported completely, although no output follows them."""
    await connected.python(
        RAW + "import os\nprint('ready', end='', flush=True)\nwhile size := int(input()):\n"
        "    data = bytes(size)\n    while data: data = data[os.write(1, data):]\n"
    )
    await connected.wait_for_output(b"ready")

    def is_reported_up_to(end: int) -> bool:
        return connected.ends["w", 1, "out"] == end

    end = len(b"ready")
    for n in range(1, 101):
        size = n * 997 % 40_000 + 1
        await connected.keeper.write("w", 1, "test", n, b"%d\n" % size)
        end += size
        await wait_until(partial(is_reported_up_to, end), f"burst {n}")
    assert len(connected.output()) == end


async def test_a_keeper_lowers_its_priority_while_it_reads_a_flood(connected: KeeperHarness) -> None:
    """Its children keep the normal scheduling policy."""
    await connected.python(RAW + "import os\nwhile True: os.write(1, b'y' * 4096)")

    def policy() -> int:
        return os.sched_getscheduler(connected.keeper.pid) & ~os.SCHED_RESET_ON_FORK

    await wait_until(lambda: policy() == os.SCHED_BATCH, "the batch policy")
    other = await connected.spawn("sleep 1000", "other")
    assert os.sched_getscheduler(other.pid) == os.SCHED_OTHER
    await connected.keeper.signal("w", 1, signal.SIGKILL)
    await connected.wait_for_exit()
    await wait_until(lambda: policy() == os.SCHED_OTHER, "the normal policy")


async def test_floods_on_both_pipes_are_stored_separately_and_completely(connected: KeeperHarness) -> None:
    source = (
        "import os\nfor i in range(0, 300000, 100):\n"
        "    data = b''.join(b'%09d\\n' % n for n in range(i, i + 100))\n"
        "    os.write(1, data)\n    i < 50000 and os.write(2, data.replace(b'0', b'x'))\n"
    )
    await connected.python(source, tty=False)
    exit_ = await connected.wait_for_exit()
    assert exit_.ends == {"out": 3_000_000, "err": 500_000}
    assert connected.output() == lines(0, 300_000)
    assert connected.output(stream="err") == lines(0, 50_000).replace(b"0", b"x")


async def test_a_terminal_keeps_at_most_its_last_64_mebibytes(connected: KeeperHarness) -> None:
    end = 80 << 20
    await connected.python(RAW + print_blocks(end // BLOCK))
    assert (await connected.wait_for_exit()).ends == {"out": end}
    start = connected.reader().start
    assert 56 << 20 <= end - start <= (64 << 20) + READ_BYTES
    assert connected.output() == bytes_of_blocks(start, end - start)
    with pytest.raises(SpoolGone):
        connected.reader().read(start - 1, 1)
    [status] = await connected.keeper.status()
    assert status.starts == {"out": start}


async def test_stderr_is_a_ring_of_at_most_one_mebibyte(connected: KeeperHarness) -> None:
    await connected.python(print_lines(1_000_000, fd=2), tty=False)
    exit_ = await connected.wait_for_exit()
    assert exit_.ends == {"out": 0, "err": 10_000_000}
    kept = connected.output(stream="err")
    assert 512 << 10 <= len(kept) <= (1 << 20) + READ_BYTES
    assert kept == lines(0, 1_000_000)[-len(kept) :]


async def test_stdout_waits_for_its_consumer_and_continues(connected: KeeperHarness) -> None:
    """No output is dropped. Beyond 128 MiB the child waits on its pipe until the server has consumed some."""
    end = 160 << 20
    await connected.python(print_blocks(end // BLOCK), tty=False)
    await wait_until(lambda: connected.ends.get(("w", 1, "out"), 0) >= MAX_UNCONSUMED_BYTES, "a full window")
    reader = connected.reader()
    full = reader.end
    assert reader.start == 0
    assert MAX_UNCONSUMED_BYTES <= full < MAX_UNCONSUMED_BYTES + READ_BYTES
    await connected.spawn("echo others continue", "other")
    await connected.wait_for_exit("other")
    assert reader.end == full, "the child waits"
    offset = 0
    while offset < end:
        piece = reader.read(offset, 1 << 20)
        assert piece == bytes_of_blocks(offset, len(piece))
        offset += len(piece)
        await connected.keeper.consumed("w", 1, offset)
    assert (await connected.wait_for_exit()).ends["out"] == end
    assert end - reader.start <= 5 << 20
    assert len(list((connected.home / "spool/w/1/out").glob("*.bin"))) == 1


@contextmanager
def file_size_limit(harness: KeeperHarness, largest: int) -> Iterator[None]:
    """Limit the files of the keeper to `largest` bytes: writes are short, then fail."""
    pid = harness.keeper.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (largest, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("tty", [True, False])
async def test_a_full_disk_makes_children_wait_and_loses_nothing(connected: KeeperHarness, tty: bool) -> None:
    wait = "import os\nos.write(1, b'ready')\nos.read(0, 1)\n"
    await connected.python((RAW if tty else "") + wait + print_lines(300_000), tty=tty)
    await connected.wait_for_output(b"ready")
    with file_size_limit(connected, 123_457):
        await connected.keeper.write("w", 1, "test", 1, b"g")
        await wait_until(lambda: connected.ends.get(("w", 1, "out")) == 123_457, "a full disk")
        if tty:
            await connected.keeper.resize("w", 1, 99, 33)
        [status] = await connected.keeper.status()
        assert status.exit is None
        assert connected.output() == (b"ready" + lines(0, 300_000))[:123_457]
    assert (await connected.wait_for_exit()).ends["out"] == 3_000_005
    assert connected.output() == b"ready" + lines(0, 300_000)
    if tty:
        sizes = [(cols, rows) for _, _, cols, rows in connected.reader().index() if cols]
        assert sizes == [(80, 24), (99, 33)]


async def test_output_that_a_full_disk_refuses_is_not_reported(connected: KeeperHarness) -> None:
    step = "os.read(0, 1); os.write(1, b'x' * 500)\n"
    spawned = await connected.python("import os\n" + step * 2, tty=False)
    with file_size_limit(connected, 500):
        await connected.keeper.write("w", 1, "test", 1, b"a")
        await wait_until(lambda: connected.ends.get(("w", 1, "out")) == 500, "a full disk")
        await connected.keeper.write("w", 1, "test", 2, b"b")
        await wait_until(lambda: has_ended(spawned.pid), "the end of the process")
        await connected.keeper.status()  # on the same connection, after any notice
    assert (await connected.wait_for_exit()).ends["out"] == 1_000


async def test_the_exit_of_a_child_on_a_full_disk_is_reported_after_its_last_byte(
    connected: KeeperHarness,
) -> None:
    spawned = await connected.python("input()\n" + print_lines(4_000), tty=False)
    with file_size_limit(connected, 10_000):
        await connected.keeper.write("w", 1, "test", 1, b"\n")
        await wait_until(lambda: has_ended(spawned.pid), "the end of the process")
        await connected.keeper.status()
        assert connected.exits == {}
    assert (await connected.wait_for_exit()).ends["out"] == 40_000
    assert connected.output() == lines(0, 4_000)


@pytest.mark.parametrize("tty", [True, False])
async def test_an_exit_comes_after_the_last_byte(connected: KeeperHarness, tty: bool) -> None:
    for run in range(1, 31):
        await connected.spawn("head -c 50000 /dev/zero | tr '\\0' x; exit 7", run=run, tty=tty)
    for run in range(1, 31):
        exit_ = await connected.wait_for_exit(run=run)
        assert (exit_.code, exit_.signal) == (7, None)
        assert exit_.ends["out"] == 50_000
        assert connected.output(run=run) == b"x" * 50_000


@pytest.mark.parametrize("tty", [True, False])
async def test_output_before_the_exit_is_stored_although_the_keeper_was_stopped(
    connected: KeeperHarness, tty: bool
) -> None:
    for run in range(1, 11):
        spawned = await connected.python(
            "import os\nos.read(0, 1)\nos.write(1, b'x' * 8000)", run=run, tty=tty
        )
        await connected.keeper.write("w", run, "test", 1, b"\n")
        os.kill(connected.keeper.pid, signal.SIGSTOP)
        try:
            await wait_until(lambda pid=spawned.pid: has_ended(pid), "the end of the process")  # type: ignore[misc]
        finally:
            os.kill(connected.keeper.pid, signal.SIGCONT)
        await connected.wait_for_exit(run=run)
        assert connected.output(run=run).removeprefix(b"\r\n") == b"x" * 8000


async def test_a_process_that_outlives_its_child_does_not_delay_the_exit(connected: KeeperHarness) -> None:
    source = (
        "sh -c 'trap \"\" HUP; exec sleep 1000' & "
        "sh -c 'trap \"\" HUP; echo started; while :; do echo more; done' & read x; echo last"
    )
    await connected.spawn(source)
    await connected.wait_for_output(b"started")
    await connected.keeper.write("w", 1, "test", 1, b"\n")
    exit_ = await connected.wait_for_exit()
    assert b"last" in connected.output()
    assert connected.reader().end == exit_.ends["out"], "output was added after the exit"


async def test_a_child_may_close_its_terminal_and_open_it_again(connected: KeeperHarness) -> None:
    source = "import os, sys\nname = os.ttyname(0)\nfor fd in 0, 1, 2: os.close(fd)\n"
    source += "sys.stdout = open('/dev/tty', 'w')\nprint('back', flush=True)\n"
    await connected.python(source)
    assert (await connected.wait_for_exit()).code == 0
    assert connected.output() == b"back\r\n"


async def test_a_child_that_closed_its_output_keeps_running(connected: KeeperHarness) -> None:
    spawned = await connected.python(
        "import os, time\nos.write(1, b'x')\nos.close(1)\nos.close(2)\ntime.sleep(1000)", tty=False
    )
    await connected.wait_for_output(b"x")
    before = _wakeups(connected.keeper.pid)
    await asyncio.sleep(1)  # a keeper that polls a closed pipe wakes up hundreds of times
    assert _wakeups(connected.keeper.pid) - before < 50
    assert connected.exits == {}
    os.kill(spawned.pid, signal.SIGKILL)
    assert (await connected.wait_for_exit()).signal == signal.SIGKILL


def _wakeups(pid: int) -> int:
    """Return how often a process has waited for events or timers."""
    return int(psutil.Process(pid).num_ctx_switches().voluntary)


async def test_an_exit_without_a_server_is_reported_until_it_is_acknowledged(harness: KeeperHarness) -> None:
    async with harness.connect():
        spawned = await harness.spawn("read x; echo done; exit 9")
        await harness.keeper.write("w", 1, "test", 1, b"go\n")
    await wait_until(lambda: not Path(f"/proc/{spawned.pid}").exists(), "the end of the child")
    for _ in range(2):
        async with harness.connect() as keepers:
            assert keepers.children["w", 1].exit is not None
            exit_ = await harness.wait_for_exit()
            assert (exit_.code, exit_.ends) == (9, {"out": len(harness.output())})
    async with harness.connect() as keepers:
        await keepers.keeper_of("w", 1).ack_exit("w", 1)
    async with harness.connect() as keepers:
        assert keepers.children == {}
        assert harness.exits == {}
    assert harness.output().endswith(b"done\r\n"), "the files were removed"


async def test_a_running_child_cannot_be_acknowledged_or_removed(connected: KeeperHarness) -> None:
    await connected.spawn("sleep 1000")
    for request in (connected.keeper.ack_exit("w", 1), connected.keeper.remove_spools("w")):
        with pytest.raises(KeeperFault, match="has not ended"):
            await request


async def test_a_removed_worker_leaves_no_file(connected: KeeperHarness) -> None:
    await connected.spawn("echo a", run=1)
    await connected.spawn("echo b", run=2, tty=False)
    for run in (1, 2):
        await connected.wait_for_exit(run=run)
        await connected.keeper.ack_exit("w", run)
    (connected.home / "spool/w/1/screen.snapshot").write_bytes(b"a file of the server")
    await connected.keeper.remove_spools("w")
    await connected.keeper.remove_spools("w")
    assert list((connected.home / "spool").iterdir()) == []


@pytest.fixture
def loop() -> Iterator[EventLoop]:
    """Return the event loop of a keeper, whose policy the processes of later tests do not inherit."""
    loop = EventLoop()
    yield loop
    loop.use_normal_priority()


def test_each_ready_stream_is_read_once_per_iteration(tmp_path: Path, loop: EventLoop) -> None:
    """A child that floods delays the others by one read at most."""
    (flooding, flood_end), (echoing, echo_end) = (
        pipe_stream(tmp_path / name, loop) for name in ("flood", "echo")
    )
    os.set_blocking(flood_end, False)
    iterations: list[tuple[int, int]] = []

    def record_iteration() -> None:
        if iterations and flooding.spool.end == iterations[-1][0]:
            return  # the flood was not read in this iteration
        iterations.append((flooding.spool.end, echoing.spool.end))
        os.write(flood_end, bytes(READ_BYTES))
        os.write(echo_end, b"k")
        if len(iterations) == 50:
            loop.stop()

    os.write(flood_end, bytes(READ_BYTES))
    loop.after_iteration = record_iteration
    loop.run()
    growth = [(flood - before[0], echo - before[1]) for before, (flood, echo) in pairwise(iterations)]
    assert growth == [(READ_BYTES, 1)] * 49


def test_output_of_a_flood_is_held_until_there_is_more_or_an_answer_is_expected(
    tmp_path: Path, loop: EventLoop
) -> None:
    stream, end = pipe_stream(tmp_path / "flood", loop)

    def write(size: int) -> int:
        os.write(end, bytes(size))
        stream.read()
        return stream.spool.end

    assert write(FLOOD_READ_BYTES) == FLOOD_READ_BYTES
    assert write(1) == FLOOD_READ_BYTES
    stream.write_held()
    assert stream.spool.end == FLOOD_READ_BYTES + 1
    assert write(FLOOD_WRITE_BYTES - 1) == FLOOD_READ_BYTES + 1
    assert write(1) == FLOOD_READ_BYTES + 1 + FLOOD_WRITE_BYTES
    loop.expect_answer()
    assert write(1) == FLOOD_READ_BYTES + 2 + FLOOD_WRITE_BYTES


def test_full_pages_are_read_one_after_the_other_unless_an_answer_is_expected(
    tmp_path: Path, loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, end = pipe_stream(tmp_path / "flood", loop)
    os.write(end, bytes(FLOOD_READ_BYTES))
    stream.read()
    pages: list[int] = []  # written before the next reads
    read: list[int] = []
    readv = os.readv

    def next_page(fd: int, buffers: tuple[memoryview]) -> int:
        if pages:
            os.write(end, bytes(pages.pop(0)))
        read.append(readv(fd, buffers))
        return read[-1]

    def read_of(*sizes: int) -> list[int]:
        pages[:], read[:] = sizes, []
        stream.read()
        return list(read)

    monkeypatch.setattr(os, "readv", next_page)
    assert read_of(PTY_PAGE_BYTES, PTY_PAGE_BYTES, 1, PTY_PAGE_BYTES) == [PTY_PAGE_BYTES, PTY_PAGE_BYTES, 1]
    assert read_of(PTY_PAGE_BYTES) == [PTY_PAGE_BYTES]  # there was no second page
    endless = read_of(*[PTY_PAGE_BYTES] * 100)
    assert sum(endless) >= MAX_FLOOD_READ_BYTES > sum(endless[:-1])
    loop.expect_answer()
    assert read_of(PTY_PAGE_BYTES, PTY_PAGE_BYTES) == [PTY_PAGE_BYTES]
    stream.write_held()
    assert (
        stream.spool.end
        == FLOOD_READ_BYTES + 2 * PTY_PAGE_BYTES + 1 + PTY_PAGE_BYTES + sum(endless) + PTY_PAGE_BYTES
    )


async def test_an_echo_beside_floods_is_answered_every_time(connected: KeeperHarness) -> None:
    for run in range(1, 4):
        await connected.python(RAW + "import os\nwhile True: os.write(1, bytes(65536))", "flood", run)
        await wait_until(partial(operator.contains, connected.ends, ("flood", run, "out")), "a flood")
    await connected.spawn(["cat"], "echo")
    grown = []
    for n in range(1, 201):
        await connected.keeper.write("echo", 1, "test", n, b"%d\n" % n)
        await connected.wait_for_output(b"%d\r\n%d\r\n" % (n, n), "echo")
        if n % 100 == 0:
            grown.append([connected.ends["flood", run, "out"] for run in range(1, 4)])
    assert all(later > sooner > 0 for sooner, later in zip(*grown, strict=True)), "a flood stopped"


async def test_two_hundred_children_need_at_most_14_megabytes(connected: KeeperHarness) -> None:
    started = time.monotonic()
    for run in range(1, 201):
        await connected.spawn(["cat"], "many", run)
    assert time.monotonic() - started < 60
    writes = [connected.keeper.write("many", run, "test", 1, b"hello %d\n" % run) for run in range(1, 201)]
    assert await asyncio.gather(*writes) == [1] * 200
    for run in range(1, 201):
        await connected.wait_for_output(b"hello %d\r\nhello %d\r\n" % (run, run), "many", run)
    memory = Path(f"/proc/{connected.keeper.pid}/status").read_text().split("VmRSS:")[1].split()[0]
    assert int(memory) <= 14 * 1024
    for run in range(1, 201):
        await connected.keeper.signal("many", run, signal.SIGKILL)
    for run in range(1, 201):
        assert (await connected.wait_for_exit("many", run)).signal == signal.SIGKILL
        await connected.keeper.ack_exit("many", run)
    assert len(os.listdir(f"/proc/{connected.keeper.pid}/fd")) < 20


async def test_the_times_of_output_are_written_periodically_and_at_the_end(
    connected: KeeperHarness,
) -> None:
    await connected.python(
        "import sys, time\nfor n in range(3): print(n, flush=True); time.sleep(0.05)\nsys.stdin.readline()"
    )
    await connected.wait_for_output(b"2\r\n")
    reader = connected.reader()
    await wait_until(lambda: [*reader.index()][-1][0] == len(b"0\r\n1\r\n"), "the last line's entry")
    await asyncio.sleep(2 * ENTRY_INTERVAL_NS / 1e9)
    await connected.keeper.write("w", 1, "me", 1, b"\n")
    await connected.wait_for_exit()
    *_, last = reader.index()
    assert last[0] == reader.end - len(b"\r\n"), "the echo of the last key"
