"""Measures of a terminal server: each takes a running system and returns figures by row key."""

import random
import selectors
import subprocess
import time
from statistics import median, quantiles

import peers
from children.flood import received_bytes
from harness.flooder import flooding
from harness.processes import cpu_seconds, memory_bytes, settled_cpu_seconds
from harness.shells import FLOOD_COMMAND, start_echo, start_flood, start_lines
from systems import Bullpen, System, Terminal

MEGABYTE = 1_000_000
MIN_LINE_BYTES = 60  # of a line of children/lines.py
Figures = dict[str, float]


def throughput(system: System, kind: str, megabytes: int) -> Figures:
    """Measure from the key to the last byte of the flood; count CPU until the server is idle again."""
    blocks = blocks_of(kind, megabytes)
    expected = blocks * received_bytes(kind)
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
    """Measure the same flood when a C program reads it from the pty and drops it."""
    blocks = blocks_of(kind, megabytes)
    expected = blocks * received_bytes(kind)
    command = [str(peers.BARE), str(expected), *FLOOD_COMMAND, kind, str(blocks)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    received, seconds, cpu = int(answer[0]), float(answer[1]), float(answer[2])
    if received != expected:
        raise RuntimeError(f"bare: {received} bytes, not {expected}")
    return {f"throughput {kind}": received / seconds / MEGABYTE, f"cpu {kind}": cpu / received * 1e9}


def blocks_of(kind: str, megabytes: int) -> int:
    return max(1, megabytes * MEGABYTE // received_bytes(kind))


def idle_echo(system: System, keys: int) -> Figures:
    p50, p99 = echo(system, keys)
    return {"echo idle p50": p50, "echo idle p99": p99}


def echo_beside_flood(system: System, keys: int) -> Figures:
    """Measure the echo while another terminal floods another client, and the speed of that flood."""
    with flooding(system) as flood:
        started, before = time.perf_counter(), flood.received
        p50, p99 = echo(system, keys)
        speed = (flood.received - before) / (time.perf_counter() - started) / MEGABYTE
    return {"echo flood p50": p50, "echo flood p99": p99, "flood beside echo": speed}


def echo(system: System, keys: int) -> tuple[float, float]:
    """Return p50 and p99 of the milliseconds from a key to its echo, one key at a time."""
    terminal = system.open()
    start_echo(terminal)
    rng = random.Random(keys)
    samples = [press(terminal, b"%c" % (97 + n % 26), rng) for n in range(keys)]
    terminal.close()
    cuts = quantiles(samples, n=100)
    return cuts[49], cuts[98]


def press(terminal: Terminal, key: bytes, rng: random.Random) -> float:
    time.sleep(rng.uniform(0.004, 0.012))  # random, so that keys are not in step with a timer of the server
    pressed = time.perf_counter()
    terminal.type(key)
    echoed = bytes(terminal.read())
    milliseconds = (time.perf_counter() - pressed) * 1000
    if echoed != key:
        raise RuntimeError(f"typed {key!r}, got {echoed!r}")
    return milliseconds


def spawn(system: System, times: int) -> Figures:
    """Measure from the request for a terminal to the first byte of its shell."""
    samples, opened = [], []
    for _ in range(times):
        started = time.perf_counter()
        opened.append(system.open())
        opened[-1].read()
        samples.append((time.perf_counter() - started) * 1000)
    for terminal in opened:  # only now: closing blocks some servers, and it is not measured
        terminal.close()
    return {"spawn": median(samples)}


def idle_memory(system: System, terminals: int) -> Figures:
    """Measure the memory of the server's processes with this many idle shells, one viewer each."""
    opened = [system.open() for _ in range(terminals)]
    for terminal in opened:
        terminal.read()
    settled_cpu_seconds(system.pids())
    rss, pss = memory_bytes(system.pids())
    for terminal in opened:
        terminal.close()
    return {"memory rss": rss / MEGABYTE, "memory pss": pss / MEGABYTE}


def many_terminals(system: System, terminals: int, seconds: float) -> Figures:
    """Measure the CPU of terminals that print ten lines a second each, with one viewer each."""
    opened = [system.open() for _ in range(terminals)]
    for terminal in opened:
        start_lines(terminal)
    with selectors.DefaultSelector() as sockets:
        for terminal in opened:
            sockets.register(terminal.socket.socket, selectors.EVENT_READ)
        read_all(sockets, 1.0)
        cpu = cpu_seconds(system.pids())
        received = read_all(sockets, seconds)
        cpu = cpu_seconds(system.pids()) - cpu
    if received < 5 * terminals * seconds * MIN_LINE_BYTES:
        raise RuntimeError(f"{system.name}: {received} bytes of {terminals} terminals in {seconds} s")
    for terminal in opened:
        terminal.close()
    return {"crowd": cpu / seconds * 100}


def read_all(sockets: selectors.BaseSelector, seconds: float) -> int:
    """Read and drop all output for some seconds; return the number of bytes."""
    end, received = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0:
        for key, _ in sockets.select(left):
            received += len(key.fileobj.recv(1 << 16))  # type: ignore[union-attr]
    return received


def echo_beside_stopped_viewer(system: System, keys: int) -> Figures:
    """Measure the memory of a viewer that never reads, and the echo of other terminals; Bullpen only."""
    if not isinstance(system, Bullpen):
        return {}
    with flooding(system) as flood:
        first = system.add_viewer(flood.terminal)  # the cost of the first additional viewer is not measured
        first.receive()
        first.close()
        alone, _ = echo(system, keys)
        settled = memory_bytes(system.pids())[0]
        stopped = system.add_viewer(flood.terminal)
        time.sleep(2)
        more = memory_bytes(system.pids())[0] - settled
        beside, _ = echo(system, keys)
        stopped.close()
    return {"asleep memory": max(0, more) / MEGABYTE, "asleep echo": beside / alone}
