"""Input of children: each numbered write arrives once, completely and in order."""

import asyncio
import errno
import hashlib
from typing import Any

import pytest

from bullpen.keeper.client import KeeperFault
from bullpen.keeper.frames import Tag
from bullpen.keeper.input import MAX_QUEUED_BYTES, MAX_WRITERS
from keeper.harness import KeeperHarness, wait_until

CAT = ["cat"]


async def refusal(request: asyncio.Future[int]) -> KeeperFault:
    with pytest.raises(KeeperFault) as fault:
        await request
    return fault.value


async def test_a_repeat_is_ignored_and_a_gap_refused(connected: KeeperHarness) -> None:
    await connected.spawn(CAT, tty=False)
    write = connected.keeper.write
    assert await write("w", 1, "a", 1, b"one ") == 1
    assert await write("w", 1, "a", 1, b"one again ") == 1
    assert await write("w", 1, "a", 2, b"two ") == 2
    gap = await refusal(write("w", 1, "a", 4, b"four "))
    assert (gap.errno, gap.last) == (errno.ERANGE, 2)
    assert await write("w", 1, "a", 3, b"three ") == 3
    assert await write("w", 1, "a", 1, b"old ") == 3
    await connected.keeper.close_input("w", 1)
    await connected.wait_for_exit()
    assert connected.output() == b"one two three "


async def test_each_writer_has_its_own_numbers_and_empty_writes_count(connected: KeeperHarness) -> None:
    await connected.spawn(CAT, tty=False)
    write = connected.keeper.write
    assert await write("w", 1, "a", 1, b"a1 ") == 1
    assert await write("w", 1, "b", 1, b"b1 ") == 1
    assert await write("w", 1, "b", 2, b"") == 2
    assert await write("w", 1, "b", 3, b"b3 ") == 3
    [status] = await connected.keeper.status()
    assert status.writers == {"a": 1, "b": 3}
    await connected.wait_for_output(b"a1 b1 b3 ")


async def test_the_least_recent_writer_is_forgotten_first(connected: KeeperHarness) -> None:
    await connected.spawn(CAT, tty=False)
    write = connected.keeper.write
    await asyncio.gather(*(write("w", 1, f"writer {i}", 1, b"") for i in range(MAX_WRITERS)))
    assert await write("w", 1, "writer 0", 2, b"") == 2
    assert await write("w", 1, "one more", 1, b"") == 1
    assert await write("w", 1, "writer 0", 3, b"") == 3
    assert await write("w", 1, "writer 2", 2, b"") == 2
    forgotten = await refusal(write("w", 1, "writer 1", 2, b""))
    assert (forgotten.errno, forgotten.last) == (errno.ERANGE, 0)
    [status] = await connected.keeper.status()
    assert len(status.writers) == MAX_WRITERS


async def test_concurrent_writes_stay_in_order(connected: KeeperHarness) -> None:
    await connected.spawn(CAT, tty=False)
    pieces = [b"%d\n" % n for n in range(1, 5001)]
    writes = [connected.keeper.write("w", 1, "a", n, piece) for n, piece in enumerate(pieces, 1)]
    assert await asyncio.gather(*writes) == list(range(1, 5001))
    await connected.keeper.close_input("w", 1)
    await connected.wait_for_exit()
    assert connected.output() == b"".join(pieces)


async def test_much_input_reaches_a_slow_reader_completely(connected: KeeperHarness) -> None:
    """Partial writes continue when the pipe has space. Beyond 8 MiB the keeper refuses writes."""
    await connected.python(
        "import hashlib, sys, os\nos.read(0, 1)\nprint(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())",
        tty=False,
    )
    await connected.keeper.write("w", 1, "a", 1, b"\n")
    await connected.python("import signal; signal.pause()", "stalled", tty=False)
    accepted = hashlib.sha256()
    n = 1
    block = bytes(range(256)) * 4096
    while True:
        try:
            await connected.keeper.write("stalled", 1, "a", n, block)
        except KeeperFault as fault:
            assert fault.errno == errno.EAGAIN
            break
        assert await connected.keeper.write("w", 1, "a", n + 1, block) == n + 1
        accepted.update(block)
        n += 1
    assert MAX_QUEUED_BYTES <= (n - 1) * len(block) <= MAX_QUEUED_BYTES + 2 * len(block)
    full = await refusal(connected.keeper.write("stalled", 1, "a", n, b"x"))
    assert full.errno == errno.EAGAIN
    await connected.keeper.close_input("w", 1)
    await connected.wait_for_exit()
    assert connected.output().decode().strip() == accepted.hexdigest()


async def test_input_waiting_for_a_child_that_dies_is_dropped(connected: KeeperHarness) -> None:
    await connected.python("import signal; signal.pause()", tty=False)
    await connected.keeper.write("w", 1, "a", 1, bytes(1 << 20))
    await connected.keeper.signal("w", 1, 9)
    assert (await connected.wait_for_exit()).signal == 9


async def test_a_closed_input_refuses_writes_and_the_child_keeps_running(connected: KeeperHarness) -> None:
    await connected.spawn("cat; echo end of input; sleep 1000", "closed", tty=False)
    await connected.keeper.write("closed", 1, "a", 1, b"last\n")
    await connected.keeper.close_input("closed", 1)
    assert await connected.wait_for_output(b"input", "closed") == b"last\nend of input\n"
    assert (await refusal(connected.keeper.write("closed", 1, "a", 2, b"x"))).errno == errno.EPIPE
    await connected.spawn("exec 0<&-; echo closed; sleep 1000", "stalled", tty=False)
    await connected.wait_for_output(b"closed", "stalled")
    assert await connected.keeper.write("stalled", 1, "a", 1, b"x") == 1
    assert (await refusal(connected.keeper.write("stalled", 1, "a", 2, b"x"))).errno == errno.EPIPE
    assert connected.exits == {}


async def test_a_pending_input_is_written_before_it_is_closed(connected: KeeperHarness) -> None:
    await connected.python("import os, sys\nos.read(0, 1)\nprint(len(sys.stdin.buffer.read()))", tty=False)
    await connected.keeper.write("w", 1, "a", 1, b"\n" + bytes(3_000_000))
    await connected.keeper.close_input("w", 1)
    await connected.wait_for_exit()
    assert connected.output() == b"3000000\n"


async def test_closing_the_input_of_a_terminal_does_nothing(connected: KeeperHarness) -> None:
    await connected.spawn(CAT)
    await connected.keeper.close_input("w", 1)
    await connected.keeper.write("w", 1, "a", 1, b"still there\n")
    await connected.wait_for_output(b"still there\r\nstill there\r\n")


async def test_a_long_paste_reaches_a_terminal_completely(connected: KeeperHarness) -> None:
    source = "import os, tty\ntty.setraw(0)\nos.write(1, b'ready')\nn = 0\n"
    source += "while n < 1000000: n += len(os.read(0, 999))\nprint(n)"
    await connected.python(source)
    await connected.wait_for_output(b"ready")
    await connected.keeper.write("w", 1, "a", 1, b"x" * 1_000_000)
    await connected.wait_for_exit()
    assert connected.output() == b"ready1000000\n"


async def test_invalid_requests_are_refused_and_do_no_damage(connected: KeeperHarness) -> None:
    await connected.spawn(CAT)
    resize: Any = connected.keeper.resize

    async def refused(worker: object, run: object, n: object) -> int:
        header = {"worker": worker, "run": run, "writer": "a", "n": n}
        return (await refusal(connected.keeper._call(Tag.WRITE, header, lambda answer: 0))).errno

    invalid_numbers: tuple[object, ...] = ("1", None, [1], {})
    for n in invalid_numbers:
        assert await refused("w", 1, n) == errno.EINVAL
    for worker, run in (("w", "1"), ("w", [1]), (None, None)):
        assert await refused(worker, run, 1) in (errno.EINVAL, errno.ESRCH)
    for cols in (0, 70000, "x", None):
        with pytest.raises(KeeperFault):
            await resize("w", 1, cols, 1)
    with pytest.raises(KeeperFault):
        await connected.keeper.signal("w", 1, 12345)
    with pytest.raises(KeeperFault):
        await connected.keeper.remove_spools("../keeper")
    await connected.keeper.write("w", 1, "a", 1, b"fine\n")
    await connected.wait_for_output(b"fine\r\nfine\r\n")
    await wait_until(lambda: connected.keeper.children == {("w", 1)})
