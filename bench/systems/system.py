"""What the measures need of a system under test: start it, open terminals in it, know its processes."""

from abc import ABC, abstractmethod
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import ClassVar, Self

from harness.processes import Server, free_port
from harness.websocket import WebSocket


class Terminal(ABC):
    """A shell in a system under test, with one viewer: us."""

    socket: WebSocket
    skipped = 0  # bytes the system chose not to send because we were too slow

    @abstractmethod
    def type(self, data: bytes) -> None:
        """Send keys to the shell."""

    @abstractmethod
    def read(self) -> bytes | memoryview:
        """Wait for the next output; it is only valid until the next read."""

    @abstractmethod
    def close(self) -> None:
        """End the shell."""


class System(ABC):
    """A terminal server; entering it starts one in a fresh home, leaving it ends everything it started."""

    name: ClassVar[str]

    home: Path
    port: int
    server: Server

    @classmethod
    @abstractmethod
    def missing(cls) -> str | None:
        """Why it cannot run here, if it cannot."""

    @classmethod
    @abstractmethod
    def versions(cls) -> str:
        """What exactly is measured, for the head of the report."""

    @abstractmethod
    def start(self) -> Server:
        """Start the server on `port` with `home` as its home."""

    @abstractmethod
    def open(self) -> Terminal:
        """Ask for a new terminal."""

    def pids(self) -> list[int]:
        """The processes on the server's side, without the shells."""
        return [self.server.pid]

    def wait_until_ready(self) -> None:
        self.server.wait_for_port(self.port)

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
