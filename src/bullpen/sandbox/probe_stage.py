"""Set up what the probes try to reach: a home with secrets, Bullpen's data, sockets and a process."""

import contextlib
import os
import pty
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

SECRET = "a secret of a probe\n"
_SLEEP = "import sys, time; print('ready', flush=True); time.sleep(600)"


class ProbeStage:
    """The directories, sockets and processes of a trial, all below one new directory."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "user"
        self.data = self.home / ".local/share/bullpen"
        self.workspace = self.home / "projects/mine"
        self.other = self.home / "projects/other"
        self.temporary = self.data / "tmp/trial"
        self.files = {
            self.data / "token": SECRET,
            self.data / "bullpen.db": SECRET,
            self.data / "spool/worker/1/out/0": SECRET,
            self.home / ".ssh/id_ed25519": SECRET,
            self.home / ".bashrc": "",
            self.home / ".profile": "",
            self.home / ".config/autostart/a.desktop": "",
            self.home / ".config/bullpen/config.toml": "",
            self.home / ".config/bullpen/agents/mine.toml": "",
            self.other / "file": SECRET,
        }
        self.abstract = f"bullpen-probe-{secrets.token_hex(6)}"
        self.tcp = self.tcp6 = self.udp = 0  # ports; 0 if there is none
        self.terminal = ""
        self.victim = 0  # the pid of a process outside of the sandbox

    @contextmanager
    def opened(self) -> Iterator["ProbeStage"]:
        """Make the files, listen on the sockets and start the process for the duration of the block."""
        with ExitStack() as stack:
            self._make_files()
            self._listen(stack)
            self._start_victim(stack)
            controller, terminal = pty.openpty()
            stack.callback(os.close, controller)
            stack.callback(os.close, terminal)
            self.terminal = os.ttyname(terminal)
            yield self

    def _make_files(self) -> None:
        """Make the files, and a git repository in the workspace."""
        for path, content in self.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        for directory in (self.workspace, self.temporary):
            directory.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "--quiet", str(self.workspace)], check=True, capture_output=True)
        (self.workspace / ".git/hooks").mkdir(exist_ok=True)

    def _listen(self, stack: ExitStack) -> None:
        """Listen on a socket of each kind; each connection is answered."""
        sockets: dict[str, tuple[int, int, Any]] = {
            "keeper": (socket.AF_UNIX, socket.SOCK_STREAM, self.data / "keeper.sock"),
            "daemon": (socket.AF_UNIX, socket.SOCK_STREAM, self.home / "daemon.sock"),
            "abstract": (socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.abstract}"),
            "tcp": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "tcp6": (socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0)),
            "udp": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        }
        for name, (family, kind, address) in sockets.items():
            listening = stack.enter_context(socket.socket(family, kind))
            try:
                _bind(listening, address)
            except OSError:
                if name != "tcp6":  # a machine may have no IPv6
                    raise
                continue
            if name in ("tcp", "tcp6", "udp"):
                setattr(self, name, listening.getsockname()[1])
            if kind == socket.SOCK_STREAM:
                listening.listen(8)
            stack.callback(_wake, listening)
            threading.Thread(target=_answer, args=(listening, kind), daemon=True).start()

    def _start_victim(self, stack: ExitStack) -> None:
        """Start a process with a secret in its environment."""
        victim = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _SLEEP],
                env={"SECRET": SECRET},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
            )
        )
        stack.callback(victim.kill)
        assert victim.stdout is not None
        victim.stdout.readline()  # its environment can be read from now on
        self.victim = victim.pid


def _bind(listening: socket.socket, address: Any) -> None:
    """Bind a socket. A path may be longer than an address, so it is named by its opened directory."""
    if isinstance(address, Path):
        directory = os.open(address.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            listening.bind(f"/proc/self/fd/{directory}/{address.name}")
        finally:
            os.close(directory)
    else:
        listening.bind(address)


def _answer(listening: socket.socket, kind: int) -> None:
    """Answer each connection or datagram until the socket is closed."""
    with contextlib.suppress(OSError):
        while True:
            if kind == socket.SOCK_DGRAM:
                data, sender = listening.recvfrom(16)
                if sender is None:  # woken at the end
                    return
                listening.sendto(data, sender)
            else:
                connection = listening.accept()[0]
                with connection:
                    connection.sendall(b"hello")


def _wake(listening: socket.socket) -> None:
    """End the thread that waits for this socket."""
    with contextlib.suppress(OSError):
        listening.shutdown(socket.SHUT_RDWR)
