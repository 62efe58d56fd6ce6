"""What children say: every byte, in order, before the exit, and no child at the cost of another."""

import asyncio
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

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
from keeper.house import House, gone, until
from keeper.streams import pipe_stream

RAW = "import os, tty; tty.setraw(1)\n"
BLOCK = 64 << 10


def lines(first: int, last: int) -> bytes:
    return b"".join(b"%09d\n" % number for number in range(first, last))


def flood(last: int, fd: int = 1) -> str:
    """Prints numbered lines as fast as it can."""
    return (
        f"import os\nfor i in range(0, {last}, 100):\n"
        f"    os.write({fd}, b''.join(b'%09d\\n' % n for n in range(i, i + 100)))\n"
    )


def blocks(count: int) -> str:
    """Prints blocks, each full of its own number."""
    return (
        f"import os\nfor i in range({count}):\n    data = i.to_bytes(4, 'big') * {BLOCK // 4}\n"
        "    while data: data = data[os.write(1, data):]\n"
    )


def of_blocks(offset: int, size: int) -> bytes:
    first, last = offset // BLOCK, (offset + size) // BLOCK
    whole = b"".join(i.to_bytes(4, "big") * (BLOCK // 4) for i in range(first, last + 1))
    return whole[offset - first * BLOCK :][:size]


async def test_a_flood_on_a_terminal_is_kept_byte_for_byte(open_house: House) -> None:
    await open_house.python(RAW + flood(1_000_000))
    exit_ = await open_house.exited()
    assert exit_.code == 0
    assert exit_.ends == {"out": 10_000_000}
    assert open_house.said() == lines(0, 1_000_000)


async def test_a_flood_that_stops_is_told_of_to_its_last_byte(open_house: House) -> None:
    """However long its bursts are, and though nothing follows."""
    await open_house.python(
        RAW + "import os\nprint('ready', end='', flush=True)\nwhile size := int(input()):\n"
        "    data = bytes(size)\n    while data: data = data[os.write(1, data):]\n"
    )
    await open_house.says(b"ready")

    def told_to(end: int) -> bool:
        return open_house.ends["w", 1, "out"] == end

    end = len(b"ready")
    for n in range(1, 101):
        size = n * 997 % 40_000 + 1
        await open_house.keeper.write("w", 1, "test", n, b"%d\n" % size)
        end += size
        await until(partial(told_to, end), f"burst {n}")
    assert len(open_house.said()) == end


async def test_a_keeper_lets_others_run_while_it_reads_a_flood(open_house: House) -> None:
    """But not its children: they run as everybody does."""
    await open_house.python(RAW + "import os\nwhile True: os.write(1, b'y' * 4096)")

    def policy() -> int:
        return os.sched_getscheduler(open_house.keeper.pid)

    await until(lambda: policy() == os.SCHED_BATCH, "patience")
    other = await open_house.spawn("sleep 1000", "other")
    assert os.sched_getscheduler(other.pid) == os.SCHED_OTHER
    await open_house.keeper.signal("w", 1, signal.SIGKILL)
    await open_house.exited()
    await until(lambda: policy() == os.SCHED_OTHER, "the usual")


async def test_floods_on_both_pipes_are_kept_apart_and_whole(open_house: House) -> None:
    source = (
        "import os\nfor i in range(0, 300000, 100):\n"
        "    data = b''.join(b'%09d\\n' % n for n in range(i, i + 100))\n"
        "    os.write(1, data)\n    i < 50000 and os.write(2, data.replace(b'0', b'x'))\n"
    )
    await open_house.python(source, tty=False)
    exit_ = await open_house.exited()
    assert exit_.ends == {"out": 3_000_000, "err": 500_000}
    assert open_house.said() == lines(0, 300_000)
    assert open_house.said(stream="err") == lines(0, 50_000).replace(b"0", b"x")


async def test_a_terminal_keeps_at_most_its_last_64_mebibytes(open_house: House) -> None:
    end = 80 << 20
    await open_house.python(RAW + blocks(end // BLOCK))
    assert (await open_house.exited()).ends == {"out": end}
    start = open_house.reader().start
    assert 56 << 20 <= end - start <= (64 << 20) + READ_BYTES
    assert open_house.said() == of_blocks(start, end - start)
    with pytest.raises(SpoolGone):
        open_house.reader().read(start - 1, 1)
    [status] = await open_house.keeper.status()
    assert status.starts == {"out": start}


async def test_stderr_is_a_ring_of_at_most_one_mebibyte(open_house: House) -> None:
    await open_house.python(flood(1_000_000, fd=2), tty=False)
    exit_ = await open_house.exited()
    assert exit_.ends == {"out": 0, "err": 10_000_000}
    said = open_house.said(stream="err")
    assert 512 << 10 <= len(said) <= (1 << 20) + READ_BYTES
    assert said == lines(0, 1_000_000)[-len(said) :]


async def test_stdout_waits_for_its_consumer_and_goes_on(open_house: House) -> None:
    """Nothing is dropped; past 128 MiB the child waits on its pipe until something is consumed."""
    end = 160 << 20
    await open_house.python(blocks(end // BLOCK), tty=False)
    await until(lambda: open_house.ends.get(("w", 1, "out"), 0) >= MAX_UNCONSUMED_BYTES, "a full window")
    reader = open_house.reader()
    full = reader.end
    assert reader.start == 0
    assert MAX_UNCONSUMED_BYTES <= full < MAX_UNCONSUMED_BYTES + READ_BYTES
    await open_house.spawn("echo others go on", "other")
    await open_house.exited("other")
    assert reader.end == full, "the child waits"
    offset = 0
    while offset < end:
        piece = reader.read(offset, 1 << 20)
        assert piece == of_blocks(offset, len(piece))
        offset += len(piece)
        await open_house.keeper.consumed("w", 1, offset)
    assert (await open_house.exited()).ends["out"] == end
    assert end - reader.start <= 5 << 20
    assert len(list((open_house.home / "spool/w/1/out").glob("*.bin"))) == 1


@contextmanager
def no_room(house: House, largest: int) -> Iterator[None]:
    """The keeper's files cannot grow beyond `largest` bytes: short writes, then errors."""
    pid = house.keeper.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (largest, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("tty", [True, False])
async def test_a_full_disk_makes_children_wait_and_loses_nothing(open_house: House, tty: bool) -> None:
    wait = "import os\nos.write(1, b'ready')\nos.read(0, 1)\n"
    await open_house.python((RAW if tty else "") + wait + flood(300_000), tty=tty)
    await open_house.says(b"ready")
    with no_room(open_house, 123_457):
        await open_house.keeper.write("w", 1, "test", 1, b"g")
        await until(lambda: open_house.ends.get(("w", 1, "out")) == 123_457, "a full disk")
        if tty:
            await open_house.keeper.resize("w", 1, 99, 33)
        [status] = await open_house.keeper.status()
        assert status.exit is None
        assert open_house.said() == (b"ready" + lines(0, 300_000))[:123_457]
    assert (await open_house.exited()).ends["out"] == 3_000_005
    assert open_house.said() == b"ready" + lines(0, 300_000)
    if tty:
        sizes = [(cols, rows) for _, _, cols, rows in open_house.reader().index() if cols]
        assert sizes == [(80, 24), (99, 33)]


async def test_what_a_full_disk_refuses_whole_is_not_told_of(open_house: House) -> None:
    step = "os.read(0, 1); os.write(1, b'x' * 500)\n"
    spawned = await open_house.python("import os\n" + step * 2, tty=False)
    with no_room(open_house, 500):
        await open_house.keeper.write("w", 1, "test", 1, b"a")
        await until(lambda: open_house.ends.get(("w", 1, "out")) == 500, "a full disk")
        await open_house.keeper.write("w", 1, "test", 2, b"b")
        await until(lambda: gone(spawned.pid), "the end of the process")
        await open_house.keeper.status()  # on the same connection, after any notice
    assert (await open_house.exited()).ends["out"] == 1_000


async def test_a_child_that_ended_on_a_full_disk_is_told_after_its_last_byte(open_house: House) -> None:
    spawned = await open_house.python("input()\n" + flood(4_000), tty=False)
    with no_room(open_house, 10_000):
        await open_house.keeper.write("w", 1, "test", 1, b"\n")
        await until(lambda: gone(spawned.pid), "the end of the process")
        await open_house.keeper.status()
        assert open_house.exits == {}
    assert (await open_house.exited()).ends["out"] == 40_000
    assert open_house.said() == lines(0, 4_000)


@pytest.mark.parametrize("tty", [True, False])
async def test_an_exit_comes_after_the_last_byte(open_house: House, tty: bool) -> None:
    for run in range(1, 31):
        await open_house.spawn("head -c 50000 /dev/zero | tr '\\0' x; exit 7", run=run, tty=tty)
    for run in range(1, 31):
        exit_ = await open_house.exited(run=run)
        assert (exit_.code, exit_.signal) == (7, None)
        assert exit_.ends["out"] == 50_000
        assert open_house.said(run=run) == b"x" * 50_000


@pytest.mark.parametrize("tty", [True, False])
async def test_last_words_are_kept_though_the_keeper_was_busy(open_house: House, tty: bool) -> None:
    for run in range(1, 11):
        spawned = await open_house.python(
            "import os\nos.read(0, 1)\nos.write(1, b'x' * 8000)", run=run, tty=tty
        )
        await open_house.keeper.write("w", run, "test", 1, b"\n")
        os.kill(open_house.keeper.pid, signal.SIGSTOP)
        try:
            await until(lambda pid=spawned.pid: gone(pid), "its end")  # type: ignore[misc]
        finally:
            os.kill(open_house.keeper.pid, signal.SIGCONT)
        await open_house.exited(run=run)
        assert open_house.said(run=run).removeprefix(b"\r\n") == b"x" * 8000


async def test_a_process_left_behind_does_not_hold_back_the_exit(open_house: House) -> None:
    source = (
        "sh -c 'trap \"\" HUP; exec sleep 1000' & "
        "sh -c 'trap \"\" HUP; echo started; while :; do echo more; done' & read x; echo last"
    )
    await open_house.spawn(source)
    await open_house.says(b"started")
    await open_house.keeper.write("w", 1, "test", 1, b"\n")
    exit_ = await open_house.exited()
    assert b"last" in open_house.said()
    assert open_house.reader().end == exit_.ends["out"], "nothing is added after the exit"


async def test_a_child_may_close_its_terminal_and_open_it_again(open_house: House) -> None:
    source = "import os, sys\nname = os.ttyname(0)\nfor fd in 0, 1, 2: os.close(fd)\n"
    source += "sys.stdout = open('/dev/tty', 'w')\nprint('back', flush=True)\n"
    await open_house.python(source)
    assert (await open_house.exited()).code == 0
    assert open_house.said() == b"back\r\n"


async def test_a_child_that_closed_its_output_lives_on(open_house: House) -> None:
    spawned = await open_house.python(
        "import os, time\nos.write(1, b'x')\nos.close(1)\nos.close(2)\ntime.sleep(1000)", tty=False
    )
    await open_house.says(b"x")
    before = _cpu(open_house.keeper.pid)
    await asyncio.sleep(1)  # in which a keeper that polls a closed pipe would use a whole core
    assert _cpu(open_house.keeper.pid) - before < 0.2
    assert open_house.exits == {}
    os.kill(spawned.pid, signal.SIGKILL)
    assert (await open_house.exited()).signal == signal.SIGKILL


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def test_an_exit_while_no_server_was_there_is_told_until_acknowledged(house: House) -> None:
    async with house.server():
        spawned = await house.spawn("read x; echo done; exit 9")
        await house.keeper.write("w", 1, "test", 1, b"go\n")
    await until(lambda: not Path(f"/proc/{spawned.pid}").exists(), "the end of the child")
    for _ in range(2):
        async with house.server() as keepers:
            assert keepers.children["w", 1].exit is not None
            exit_ = await house.exited()
            assert (exit_.code, exit_.ends) == (9, {"out": len(house.said())})
    async with house.server() as keepers:
        await keepers.keeper_of("w", 1).ack_exit("w", 1)
    async with house.server() as keepers:
        assert keepers.children == {}
        assert house.exits == {}
    assert house.said().endswith(b"done\r\n"), "the files stay"


async def test_a_child_not_yet_ended_cannot_be_acknowledged_or_forgotten(open_house: House) -> None:
    await open_house.spawn("sleep 1000")
    for request in (open_house.keeper.ack_exit("w", 1), open_house.keeper.remove_spools("w")):
        with pytest.raises(Exception, match="has not ended"):
            await request


async def test_a_forgotten_worker_leaves_no_file(open_house: House) -> None:
    await open_house.spawn("echo a", run=1)
    await open_house.spawn("echo b", run=2, tty=False)
    for run in (1, 2):
        await open_house.exited(run=run)
        await open_house.keeper.ack_exit("w", run)
    (open_house.home / "spool/w/1/screen.snapshot").write_bytes(b"the server's own")
    await open_house.keeper.remove_spools("w")
    await open_house.keeper.remove_spools("w")
    assert list((open_house.home / "spool").iterdir()) == []


def test_each_ready_stream_is_read_once_a_turn(tmp_path: Path) -> None:
    """A child that floods costs its neighbours one read, never more."""
    loop = EventLoop()
    (flooding, flood_end), (echoing, echo_end) = (
        pipe_stream(tmp_path / name, loop) for name in ("flood", "echo")
    )
    os.set_blocking(flood_end, False)
    turns: list[tuple[int, int]] = []

    def next_turn() -> None:
        if turns and flooding.spool.end == turns[-1][0]:
            return  # the others have been served, the flood not yet
        turns.append((flooding.spool.end, echoing.spool.end))
        os.write(flood_end, bytes(READ_BYTES))
        os.write(echo_end, b"k")
        if len(turns) == 50:
            loop.stop()

    os.write(flood_end, bytes(READ_BYTES))
    loop.after_iteration = next_turn
    loop.run()
    growth = [(flood - was[0], echo - was[1]) for was, (flood, echo) in pairwise(turns)]
    assert growth == [(READ_BYTES, 1)] * 49


def test_what_a_flood_says_waits_for_more_unless_it_is_wanted_now(tmp_path: Path) -> None:
    loop = EventLoop()
    stream, end = pipe_stream(tmp_path / "flood", loop)

    def say(size: int) -> int:
        os.write(end, bytes(size))
        stream.read()
        return stream.spool.end

    assert say(FLOOD_READ_BYTES) == FLOOD_READ_BYTES
    assert say(1) == FLOOD_READ_BYTES
    stream.write_held()
    assert stream.spool.end == FLOOD_READ_BYTES + 1
    assert say(FLOOD_WRITE_BYTES - 1) == FLOOD_READ_BYTES + 1
    assert say(1) == FLOOD_READ_BYTES + 1 + FLOOD_WRITE_BYTES
    loop.expect_answer()
    assert say(1) == FLOOD_READ_BYTES + 2 + FLOOD_WRITE_BYTES


def test_full_pages_are_read_one_after_the_other_unless_somebody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = EventLoop()
    stream, end = pipe_stream(tmp_path / "flood", loop)
    os.write(end, bytes(FLOOD_READ_BYTES))
    stream.read()
    pages: list[int] = []  # to come
    read: list[int] = []
    really_read = os.readv

    def next_page(fd: int, buffers: tuple[memoryview]) -> int:
        if pages:
            os.write(end, bytes(pages.pop(0)))
        read.append(really_read(fd, buffers))
        return read[-1]

    def read_of(*sizes: int) -> list[int]:
        pages[:], read[:] = sizes, []
        stream.read()
        return list(read)

    monkeypatch.setattr(os, "readv", next_page)
    assert read_of(PTY_PAGE_BYTES, PTY_PAGE_BYTES, 1, PTY_PAGE_BYTES) == [PTY_PAGE_BYTES, PTY_PAGE_BYTES, 1]
    assert read_of(PTY_PAGE_BYTES) == [PTY_PAGE_BYTES]  # and no more was there
    endless = read_of(*[PTY_PAGE_BYTES] * 100)
    assert sum(endless) >= MAX_FLOOD_READ_BYTES > sum(endless[:-1])
    loop.expect_answer()
    assert read_of(PTY_PAGE_BYTES, PTY_PAGE_BYTES) == [PTY_PAGE_BYTES]
    stream.write_held()
    assert (
        stream.spool.end
        == FLOOD_READ_BYTES + 2 * PTY_PAGE_BYTES + 1 + PTY_PAGE_BYTES + sum(endless) + PTY_PAGE_BYTES
    )


async def test_an_echo_beside_floods_is_answered_every_time(open_house: House) -> None:
    for run in range(1, 4):
        await open_house.python(RAW + "import os\nwhile True: os.write(1, bytes(65536))", "flood", run)
    await open_house.spawn(["cat"], "echo")
    grown = []
    for n in range(1, 201):
        await open_house.keeper.write("echo", 1, "test", n, b"%d\n" % n)
        await open_house.says(b"%d\r\n%d\r\n" % (n, n), "echo")
        if n % 100 == 0:
            grown.append([open_house.ends["flood", run, "out"] for run in range(1, 4)])
    assert all(later > sooner > 0 for sooner, later in zip(*grown, strict=True)), "they go on meanwhile"


async def test_two_hundred_children_at_once_within_14_megabytes(open_house: House) -> None:
    started = time.monotonic()
    for run in range(1, 201):
        await open_house.spawn(["cat"], "many", run)
    assert time.monotonic() - started < 60
    writes = [open_house.keeper.write("many", run, "test", 1, b"hello %d\n" % run) for run in range(1, 201)]
    assert await asyncio.gather(*writes) == [1] * 200
    for run in range(1, 201):
        await open_house.says(b"hello %d\r\nhello %d\r\n" % (run, run), "many", run)
    memory = Path(f"/proc/{open_house.keeper.pid}/status").read_text().split("VmRSS:")[1].split()[0]
    assert int(memory) <= 14 * 1024
    for run in range(1, 201):
        await open_house.keeper.signal("many", run, signal.SIGKILL)
    for run in range(1, 201):
        assert (await open_house.exited("many", run)).signal == signal.SIGKILL
        await open_house.keeper.ack_exit("many", run)
    assert len(os.listdir(f"/proc/{open_house.keeper.pid}/fd")) < 20


async def test_what_came_when_is_written_within_a_second_or_two_and_at_the_end(open_house: House) -> None:
    await open_house.python(
        "import sys, time\nfor n in range(3): print(n, flush=True); time.sleep(0.05)\nsys.stdin.readline()"
    )
    await open_house.says(b"2\r\n")
    reader = open_house.reader()
    await until(lambda: [*reader.index()][-1][0] == len(b"0\r\n1\r\n"), "the last line's entry")
    await asyncio.sleep(2 * ENTRY_INTERVAL_NS / 1e9)
    await open_house.keeper.write("w", 1, "me", 1, b"\n")
    await open_house.exited()
    *_, last = reader.index()
    assert last[0] == reader.end - len(b"\r\n"), "the echo of the last key"
