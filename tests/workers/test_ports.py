"""Ports on which programs with a marker listen, tested with real processes and sockets."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bullpen.keeper.marker import MARKER, marker
from bullpen.workers.ports import find_ports
from support.ports import free_port

LISTENING_PROGRAM = """
import os, socket, sys
for address in sys.argv[2:]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listening.bind((address, int(sys.argv[1])))
    listening.listen()
    os.dup(listening.detach())
if os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def listening(home_id: str, worker_id: str, port: int, *addresses: str) -> Iterator[int]:
    """Start a program that listens, with a child that has the same sockets. Yield the pid of the program."""
    env = os.environ | {MARKER: marker(home_id, worker_id, 1)}
    words = [sys.executable, "-c", LISTENING_PROGRAM, str(port), *addresses]
    with subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        yield process.pid
        assert process.stdin
        process.stdin.close()


@pytest.fixture
def home_id(tmp_path: Path) -> str:
    return f"{os.getpid()}-{tmp_path.name}"


def test_a_port_is_reported_once_with_its_worker_and_its_first_process(home_id: str) -> None:
    port = free_port()
    with listening(home_id, "mine", port, "127.0.0.1") as pid:
        [found] = find_ports(home_id, {"mine"})
        assert found == (port, "127.0.0.1", "mine", pid, Path(sys.executable).name)
        assert find_ports(home_id, {"another"}) == []
        assert find_ports("another home", {"mine"}) == []
    assert find_ports(home_id, {"mine"}) == []


@pytest.mark.parametrize(
    ("addresses", "reported"),
    [
        (("::1", "127.0.0.1"), "127.0.0.1"),
        (("::1", "0.0.0.0"), "0.0.0.0"),
        (("::", "127.0.0.1"), "::"),
        (("::1",), "::1"),
        (("127.0.0.2",), "127.0.0.2"),
    ],
)
def test_the_widest_of_several_addresses_is_reported(
    home_id: str, addresses: tuple[str, ...], reported: str
) -> None:
    with listening(home_id, "mine", free_port(), *addresses):
        assert [each.address for each in find_ports(home_id, {"mine"})] == [reported]


def test_ports_are_sorted_and_each_worker_has_its_own(home_id: str) -> None:
    low, high = sorted((free_port(), free_port()))
    with listening(home_id, "a", high, "127.0.0.1"), listening(home_id, "b", low, "127.0.0.1"):
        found = find_ports(home_id, {"a", "b"})
        assert [(each.port, each.worker_id) for each in found] == [(low, "b"), (high, "a")]


def test_without_proc_nothing_is_found(home_id: str, tmp_path: Path) -> None:
    with listening(home_id, "mine", free_port(), "127.0.0.1"):
        assert find_ports(home_id, {"mine"}, tmp_path / "no proc") == []


def test_a_process_that_ended_or_cannot_be_read_is_left_out(home_id: str, tmp_path: Path) -> None:
    """Use a /proc in which the descriptors of the process cannot be read."""
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_bytes(Path("/proc/net/tcp").read_bytes())
    with listening(home_id, "mine", free_port(), "127.0.0.1") as pid:
        assert find_ports(home_id, {"mine"}, tmp_path) == []
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "fd").write_text("not a directory")
        assert find_ports(home_id, {"mine"}, tmp_path) == []


def test_ports_of_the_server_itself_are_not_reported(home_id: str) -> None:
    """A server that was started in one of its own terminals has the marker in its environment."""
    program = (
        "import os, socket, sys; from bullpen.workers.ports import find_ports;"
        "s = socket.create_server(('127.0.0.1', 0)); print(find_ports(sys.argv[1], {'mine'}))"
    )
    env = os.environ | {MARKER: marker(home_id, "mine", 1)}
    result = subprocess.run(
        [sys.executable, "-c", program, home_id], env=env, capture_output=True, check=True
    )
    assert result.stdout == b"[]\n"
