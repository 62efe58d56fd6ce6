"""The measures of a terminal server: each takes a running system and returns its figures by name of row."""

import random
import selectors
import subprocess
import time
from statistics import median, quantiles

import peers
from children.flood import arriving
from harness.flooder import flooding
from harness.processes import cpu_seconds, memory_bytes, settled_cpu_seconds
from harness.shells import FLOOD_COMMAND, start_echo, start_flood, start_lines
from systems import Bullpen, System, Terminal

MEGABYTE = 1_000_000
LINE = 60  # bytes of one that a crowd prints, at least
Figures = dict[str, float]


def throughput(system: System, kind: str, megabytes: int) -> Figures:
    """From the key that starts the flood to its last byte; CPU until the servers are at rest again."""
    blocks = blocks_of(kind, megabytes)
    expected = blocks * arriving(kind)
    pids = system.pids()
    terminal = system.open()
    start_flood(terminal, kind, blocks)
    cpu, own_cpu, started = settled_cpu_seconds(pids), time.process_time(), time.perf_counter()
    terminal.type(b"g")
    received = 0
    while received + terminal.skipped < expected:
        received += len(terminal.read())
    seconds, own_cpu = time.perf_counter() - started, time.process_time() - own_cpu
    cpu = settled_cpu_seconds(pids) - cpu
    if received != expected:
        raise RuntimeError(f"{system.name}: {received} bytes and {terminal.skipped} skipped, not {expected}")
    terminal.close()
    return {
        f"throughput {kind}": expected / seconds / MEGABYTE,
        f"cpu {kind}": cpu / expected * 1e9,
        f"client {kind}": own_cpu / seconds * 100,
    }


def bare_throughput(kind: str, megabytes: int) -> Figures:
    """The same flood read from its pty and thrown away by a C program."""
    blocks = blocks_of(kind, megabytes)
    expected = blocks * arriving(kind)
    command = [str(peers.BARE), str(expected), *FLOOD_COMMAND, kind, str(blocks)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    received, seconds, cpu = int(answer[0]), float(answer[1]), float(answer[2])
    if received != expected:
        raise RuntimeError(f"bare: {received} bytes, not {expected}")
    return {f"throughput {kind}": received / seconds / MEGABYTE, f"cpu {kind}": cpu / received * 1e9}


def blocks_of(kind: str, megabytes: int) -> int:
    return max(1, megabytes * MEGABYTE // arriving(kind))


def idle_echo(system: System, keys: int) -> Figures:
    p50, p99 = echo(system, keys)
    return {"echo idle p50": p50, "echo idle p99": p99}


def echo_beside_flood(system: System, keys: int) -> Figures:
    """The same while another terminal of the same server floods another client; and how fast that one is."""
    with flooding(system) as flood:
        started, before = time.perf_counter(), flood.delivered
        p50, p99 = echo(system, keys)
        speed = (flood.delivered - before) / (time.perf_counter() - started) / MEGABYTE
    return {"echo flood p50": p50, "echo flood p99": p99, "flood beside echo": speed}


def echo(system: System, keys: int) -> tuple[float, float]:
    """p50 and p99 of the milliseconds from a key to its echo, one key at a time."""
    terminal = system.open()
    start_echo(terminal)
    dice = random.Random(keys)
    samples = [press(terminal, b"%c" % (97 + n % 26), dice) for n in range(keys)]
    terminal.close()
    cuts = quantiles(samples, n=100)
    return cuts[49], cuts[98]


def press(terminal: Terminal, key: bytes, dice: random.Random) -> float:
    time.sleep(dice.uniform(0.004, 0.012))  # uneven, so as not to run in step with a timer of the server
    pressed = time.perf_counter()
    terminal.type(key)
    echoed = bytes(terminal.read())
    milliseconds = (time.perf_counter() - pressed) * 1000
    if echoed != key:
        raise RuntimeError(f"typed {key!r}, got {echoed!r}")
    return milliseconds


def spawn(system: System, times: int) -> Figures:
    """From asking for a terminal to the first byte its shell prints."""
    samples, opened = [], []
    for _ in range(times):
        asked = time.perf_counter()
        opened.append(system.open())
        opened[-1].read()
        samples.append((time.perf_counter() - asked) * 1000)
    for terminal in opened:  # not before: closing blocks some servers, and is not what is measured
        terminal.close()
    return {"spawn": median(samples)}


def idle_memory(system: System, terminals: int) -> Figures:
    """The server's processes with that many shells at their prompt, one viewer each."""
    opened = [system.open() for _ in range(terminals)]
    for terminal in opened:
        terminal.read()
    settled_cpu_seconds(system.pids())
    rss, pss = memory_bytes(system.pids())
    for terminal in opened:
        terminal.close()
    return {"memory rss": rss / MEGABYTE, "memory pss": pss / MEGABYTE}


def crowd(system: System, terminals: int, seconds: float) -> Figures:
    """So many terminals that print ten lines a second each, one viewer each."""
    opened = [system.open() for _ in range(terminals)]
    for terminal in opened:
        start_lines(terminal)
    with selectors.DefaultSelector() as sockets:
        for terminal in opened:
            sockets.register(terminal.socket.socket, selectors.EVENT_READ)
        swallow(sockets, 1.0)
        cpu = cpu_seconds(system.pids())
        received = swallow(sockets, seconds)
        cpu = cpu_seconds(system.pids()) - cpu
    if received < 5 * terminals * seconds * LINE:
        raise RuntimeError(f"{system.name}: {received} bytes of {terminals} terminals in {seconds} s")
    for terminal in opened:
        terminal.close()
    return {"crowd": cpu / seconds * 100}


def swallow(sockets: selectors.BaseSelector, seconds: float) -> int:
    """Reads everything and looks at nothing, so that the client is in nobody's way."""
    end, received = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0:
        for key, _ in sockets.select(left):
            received += len(key.fileobj.recv(1 << 16))  # type: ignore[union-attr]
    return received


def beside_one_asleep(system: System, keys: int) -> Figures:
    """What a second viewer of a flood costs that never reads, and what others' echo becomes; ours only."""
    if not isinstance(system, Bullpen):
        return {}
    with flooding(system) as flood:
        newcomer = system.look_at(flood.terminal)  # what the first one costs is not the sleeper's fault
        newcomer.receive()
        newcomer.close()
        alone, _ = echo(system, keys)
        settled = memory_bytes(system.pids())[0]
        asleep = system.look_at(flood.terminal)
        time.sleep(2)
        more = memory_bytes(system.pids())[0] - settled
        beside, _ = echo(system, keys)
        asleep.close()
    return {"asleep memory": max(0, more) / MEGABYTE, "asleep echo": beside / alone}
