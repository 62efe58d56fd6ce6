"""Base classes of a system under test: start it, open terminals in it, and find its processes."""

from abc import ABC, abstractmethod
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import ClassVar, Self

from harness.processes import Server, free_port
from harness.websocket import WebSocket


class Terminal(ABC):
    """A shell in a system under test, with this client as its viewer."""

    socket: WebSocket
    skipped = 0  # bytes that the system left out because the client was too slow

    @abstractmethod
    def type(self, data: bytes) -> None:
        """Send keys to the shell."""

    @abstractmethod
    def read(self) -> bytes | memoryview:
        """Wait for the next output and return it; it is valid only until the next read."""

    @abstractmethod
    def close(self) -> None:
        """End the shell."""


class System(ABC):
    """A terminal server. Entering the block starts it in a new home; leaving it ends all its processes."""

    name: ClassVar[str]
    runs_agents: ClassVar[bool] = False  # here, without an account and a model
    redraws: ClassVar[bool] = False  # sends the screen, not the bytes of the program

    home: Path
    port: int
    server: Server

    @classmethod
    @abstractmethod
    def missing(cls) -> str | None:
        """Return why the system cannot run on this machine, or None."""

    @classmethod
    @abstractmethod
    def versions(cls) -> str:
        """Return the measured versions, for the head of the report."""

    @abstractmethod
    def start(self) -> Server:
        """Start the server on `port` with `home` as its home."""

    @abstractmethod
    def open(self) -> Terminal:
        """Open a new terminal."""

    def reopen(self, terminal: Terminal) -> Terminal | None:
        """Open a terminal again after the server was started again; None if it is gone."""
        return None

    def pids(self) -> list[int]:
        """Return the processes of the server, without the shells."""
        return [self.server.pid]

    def wait_until_ready(self) -> None:
        self.server.wait_for_port(self.port)

    def prompt(self, text: str) -> None:
        """Give a prompt to the demo agent, in a system that runs agents by protocol."""
        raise NotImplementedError

    def open_request(self) -> str | None:
        """Return the id of the permission that the agent requests; None if it requests none."""
        raise NotImplementedError

    def allow(self, request: str) -> None:
        """Answer the request of the agent."""
        raise NotImplementedError

    def start_again(self) -> None:
        """Start the server after it was killed, in the same home."""
        self.server = self.start()
        self.wait_until_ready()

    def stop(self) -> None:
        self.server.stop()

    def __enter__(self) -> Self:
        self._folder = TemporaryDirectory(prefix="bench-")
        self.home = Path(self._folder.name)
        self.port = free_port()
        self.server = self.start()
        try:
            self.wait_until_ready()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._folder.cleanup()
