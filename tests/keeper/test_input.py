"""What children are told: by number, once, whole and in order."""

import asyncio
import errno
import hashlib
from typing import Any

import pytest

from bullpen.keeper.client import KeeperFault
from bullpen.keeper.frames import Tag
from bullpen.keeper.input import MAX_QUEUED_BYTES, MAX_WRITERS
from keeper.house import House, until

COPY = ["cat"]


async def refusal(request: asyncio.Future[int]) -> KeeperFault:
    with pytest.raises(KeeperFault) as fault:
        await request
    return fault.value


async def test_a_repeat_is_ignored_and_a_gap_refused(open_house: House) -> None:
    await open_house.spawn(COPY, tty=False)
    write = open_house.keeper.write
    assert await write("w", 1, "a", 1, b"one ") == 1
    assert await write("w", 1, "a", 1, b"one again ") == 1
    assert await write("w", 1, "a", 2, b"two ") == 2
    gap = await refusal(write("w", 1, "a", 4, b"four "))
    assert (gap.errno, gap.last) == (errno.ERANGE, 2)
    assert await write("w", 1, "a", 3, b"three ") == 3
    assert await write("w", 1, "a", 1, b"old ") == 3
    await open_house.keeper.close_input("w", 1)
    await open_house.exited()
    assert open_house.said() == b"one two three "


async def test_writers_count_apart_and_empty_bytes_count_too(open_house: House) -> None:
    await open_house.spawn(COPY, tty=False)
    write = open_house.keeper.write
    assert await write("w", 1, "a", 1, b"a1 ") == 1
    assert await write("w", 1, "b", 1, b"b1 ") == 1
    assert await write("w", 1, "b", 2, b"") == 2
    assert await write("w", 1, "b", 3, b"b3 ") == 3
    [status] = await open_house.keeper.status()
    assert status.writers == {"a": 1, "b": 3}
    await open_house.says(b"a1 b1 b3 ")


async def test_the_writer_longest_silent_is_forgotten_first(open_house: House) -> None:
    await open_house.spawn(COPY, tty=False)
    write = open_house.keeper.write
    await asyncio.gather(*(write("w", 1, f"writer {i}", 1, b"") for i in range(MAX_WRITERS)))
    assert await write("w", 1, "writer 0", 2, b"") == 2
    assert await write("w", 1, "one more", 1, b"") == 1
    assert await write("w", 1, "writer 0", 3, b"") == 3
    assert await write("w", 1, "writer 2", 2, b"") == 2
    forgotten = await refusal(write("w", 1, "writer 1", 2, b""))
    assert (forgotten.errno, forgotten.last) == (errno.ERANGE, 0)
    [status] = await open_house.keeper.status()
    assert len(status.writers) == MAX_WRITERS


async def test_writes_that_do_not_wait_for_each_other_stay_in_order(open_house: House) -> None:
    await open_house.spawn(COPY, tty=False)
    pieces = [b"%d\n" % n for n in range(1, 5001)]
    writes = [open_house.keeper.write("w", 1, "a", n, piece) for n, piece in enumerate(pieces, 1)]
    assert await asyncio.gather(*writes) == list(range(1, 5001))
    await open_house.keeper.close_input("w", 1)
    await open_house.exited()
    assert open_house.said() == b"".join(pieces)


async def test_much_input_reaches_a_slow_reader_whole(open_house: House) -> None:
    """Partial writes go on when there is room; beyond 8 MiB the keeper takes no more."""
    await open_house.python(
        "import hashlib, sys, os\nos.read(0, 1)\nprint(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())",
        tty=False,
    )
    await open_house.keeper.write("w", 1, "a", 1, b"\n")
    await open_house.python("import signal; signal.pause()", "deaf", tty=False)
    taken = hashlib.sha256()
    n = 1
    block = bytes(range(256)) * 4096
    while True:
        try:
            await open_house.keeper.write("deaf", 1, "a", n, block)
        except KeeperFault as fault:
            assert fault.errno == errno.EAGAIN
            break
        assert await open_house.keeper.write("w", 1, "a", n + 1, block) == n + 1
        taken.update(block)
        n += 1
    assert MAX_QUEUED_BYTES <= (n - 1) * len(block) <= MAX_QUEUED_BYTES + 2 * len(block)
    full = await refusal(open_house.keeper.write("deaf", 1, "a", n, b"x"))
    assert full.errno == errno.EAGAIN
    await open_house.keeper.close_input("w", 1)
    await open_house.exited()
    assert open_house.said().decode().strip() == taken.hexdigest()


async def test_input_waiting_for_a_child_that_dies_is_dropped(open_house: House) -> None:
    await open_house.python("import signal; signal.pause()", tty=False)
    await open_house.keeper.write("w", 1, "a", 1, bytes(1 << 20))
    await open_house.keeper.signal("w", 1, 9)
    assert (await open_house.exited()).signal == 9


async def test_a_closed_input_takes_nothing_and_the_child_lives_on(open_house: House) -> None:
    await open_house.spawn("cat; echo end of input; sleep 1000", "closed", tty=False)
    await open_house.keeper.write("closed", 1, "a", 1, b"last\n")
    await open_house.keeper.close_input("closed", 1)
    assert await open_house.says(b"input", "closed") == b"last\nend of input\n"
    assert (await refusal(open_house.keeper.write("closed", 1, "a", 2, b"x"))).errno == errno.EPIPE
    await open_house.spawn("exec 0<&-; echo deaf; sleep 1000", "deaf", tty=False)
    await open_house.says(b"deaf", "deaf")
    assert await open_house.keeper.write("deaf", 1, "a", 1, b"x") == 1
    assert (await refusal(open_house.keeper.write("deaf", 1, "a", 2, b"x"))).errno == errno.EPIPE
    assert open_house.exits == {}


async def test_a_pending_input_is_written_before_it_is_closed(open_house: House) -> None:
    await open_house.python("import os, sys\nos.read(0, 1)\nprint(len(sys.stdin.buffer.read()))", tty=False)
    await open_house.keeper.write("w", 1, "a", 1, b"\n" + bytes(3_000_000))
    await open_house.keeper.close_input("w", 1)
    await open_house.exited()
    assert open_house.said() == b"3000000\n"


async def test_closing_the_input_of_a_terminal_does_nothing(open_house: House) -> None:
    await open_house.spawn(COPY)
    await open_house.keeper.close_input("w", 1)
    await open_house.keeper.write("w", 1, "a", 1, b"still there\n")
    await open_house.says(b"still there\r\nstill there\r\n")


async def test_a_long_paste_reaches_a_terminal_whole(open_house: House) -> None:
    source = "import os, tty\ntty.setraw(0)\nos.write(1, b'ready')\nn = 0\n"
    source += "while n < 1000000: n += len(os.read(0, 999))\nprint(n)"
    await open_house.python(source)
    await open_house.says(b"ready")
    await open_house.keeper.write("w", 1, "a", 1, b"x" * 1_000_000)
    await open_house.exited()
    assert open_house.said() == b"ready1000000\n"


async def test_nonsense_is_refused_and_harms_nobody(open_house: House) -> None:
    await open_house.spawn(COPY)
    resize: Any = open_house.keeper.resize

    async def refused(worker: object, run: object, n: object) -> int:
        header = {"worker": worker, "run": run, "writer": "a", "n": n}
        return (await refusal(open_house.keeper._call(Tag.WRITE, header, lambda answer: 0))).errno

    nonsense: tuple[object, ...] = ("1", None, [1], {})
    for n in nonsense:
        assert await refused("w", 1, n) == errno.EINVAL
    for worker, run in (("w", "1"), ("w", [1]), (None, None)):
        assert await refused(worker, run, 1) in (errno.EINVAL, errno.ESRCH)
    for cols in (0, 70000, "x", None):
        with pytest.raises(KeeperFault):
            await resize("w", 1, cols, 1)
    with pytest.raises(KeeperFault):
        await open_house.keeper.signal("w", 1, 12345)
    with pytest.raises(KeeperFault):
        await open_house.keeper.remove_spools("../keeper")
    await open_house.keeper.write("w", 1, "a", 1, b"fine\n")
    await open_house.says(b"fine\r\nfine\r\n")
    await until(lambda: open_house.keeper.children == {("w", 1)})
