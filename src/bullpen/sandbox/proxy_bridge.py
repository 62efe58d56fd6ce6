"""Relay connections from a port in a sealed run to the socket of the proxy, and run the program.

This file is run as a script in the sandbox, so it imports nothing of Bullpen. Its arguments are the socket,
the port, `--` and the program. The relay ends with the program.
"""

import os
import select
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

READ_BYTES = 1 << 16
SECONDS = 15.0  # for a server that is being restarted
RETRY_SECONDS = 0.05


def program_of(port: int) -> str:
    """Return the name of the program whose connection has this local port, or a question mark."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inode = next((row[9] for row in rows if row[1].endswith(f":{port:04X}")), "")
    for process in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            for descriptor in os.listdir(f"/proc/{process}/fd"):
                if os.readlink(f"/proc/{process}/fd/{descriptor}") == f"socket:[{inode}]":
                    return Path(f"/proc/{process}/comm").read_text().strip()
    return "?"


def copy(source: socket.socket, target: socket.socket) -> None:
    """Copy everything from one socket to another, and then its end."""
    with suppress(OSError):
        while data := source.recv(READ_BYTES):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def connect(path: str) -> socket.socket:
    """Connect to the proxy; wait for it while the server starts."""
    until = time.monotonic() + SECONDS
    while True:
        proxy = socket.socket(socket.AF_UNIX)
        try:
            proxy.connect(path)
        except OSError:
            proxy.close()
            if time.monotonic() > until:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            return proxy


def relay(client: socket.socket, client_port: int, path: str) -> None:
    """Relay one connection; the first line to the proxy names the program."""
    with client, suppress(OSError), connect(path) as proxy:
        proxy.sendall(f"{program_of(client_port)}\n".encode())
        back = threading.Thread(target=copy, args=(proxy, client), daemon=True)
        back.start()
        copy(client, proxy)
        back.join()


def serve(listening: socket.socket, path: str, program: int) -> None:
    """Accept connections until the program ends."""
    ended = os.pidfd_open(program)
    while True:
        ready, _, _ = select.select([listening.fileno(), ended], [], [])
        if ended in ready:
            os._exit(0)
        client, address = listening.accept()
        threading.Thread(target=relay, args=(client, address[1], path), daemon=True).start()


def start_relay(path: str, port: int) -> None:
    """Start the relay in a process that is not a child of this one, which becomes the program."""
    program = os.getpid()
    listening = socket.create_server(("127.0.0.1", port))
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            nothing = os.open(os.devnull, os.O_RDWR)
            for standard in range(3):
                os.dup2(nothing, standard)
            serve(listening, path, program)
        os._exit(0)
    os.waitpid(child, 0)
    listening.close()


def main() -> None:
    """Start the relay and run the program."""
    path, port, argv = sys.argv[1], int(sys.argv[2]), sys.argv[4:]
    start_relay(path, port)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.exit(f"cannot start {argv[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
