"""The two formats of terminal output on a socket: JSON messages, and binary frames with offsets."""

import codecs
from collections.abc import Callable
from typing import Protocol

from ..websocket import Frame, output_frame
from .admission import AdmittedSocket


class OutputFormat(Protocol):
    """How a socket sends the output of a terminal."""

    async def send_output(self, socket: AdmittedSocket, offset: int, data: bytes) -> None:
        """Send output that begins at an offset of the run."""

    def frame(self, offset: int, data: bytes) -> Frame | None:
        """Return the output as a frame to send at once, or None if this format cannot."""
        ...


class BinaryFormat:
    """Sends output as binary frames, each with the offset of its first byte."""

    async def send_output(self, socket: AdmittedSocket, offset: int, data: bytes) -> None:
        """Send output as one binary frame with its offset."""
        await socket.send_frame(output_frame(offset, data))

    frame = staticmethod(output_frame)


class JsonFormat:
    """Sends output as JSON messages with complete characters."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def send_output(self, socket: AdmittedSocket, offset: int, data: bytes) -> None:
        """Send the complete characters; keep the bytes of an incomplete one for the next call."""
        held = len(self._decoder.getstate()[0])
        if text := self._decoder.decode(data):
            await socket.send({"type": "output", "offset": offset - held, "data": text})

    def frame(self, offset: int, data: bytes) -> None:
        """Return None: the decoder may hold a part of a character. Clients that need speed use frames."""


OUTPUT_FORMATS: dict[str, Callable[[], OutputFormat]] = {"json": JsonFormat, "binary": BinaryFormat}
