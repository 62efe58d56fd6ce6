"""How the output of a terminal travels: binary frames with offsets, or R77's JSON."""

import codecs
from typing import Protocol

from ..websocket import Frame, output_frame
from .admission import AdmittedSocket


class OutputFormat(Protocol):
    async def send_output(self, socket: AdmittedSocket, offset: int, data: bytes) -> None: ...

    def frame(self, offset: int, data: bytes) -> Frame | None:
        """What can be sent at once; None when that cannot be."""
        ...


class BinaryFormat:
    async def send_output(self, socket: AdmittedSocket, offset: int, data: bytes) -> None:
        await socket.send_frame(output_frame(offset, data))

    frame = staticmethod(output_frame)


class JsonFormat:
    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def send_output(self, socket: AdmittedSocket, offset: int, data: bytes) -> None:
        held = len(self._decoder.getstate()[0])
        if text := self._decoder.decode(data):
            await socket.send({"type": "output", "offset": offset - held, "data": text})

    def frame(self, offset: int, data: bytes) -> None:
        return None  # half a character may have to be kept, and nobody in a hurry reads JSON
