"""What was received and not yet drawn, and how far: no byte twice, none left out."""

import asyncio

from .frames import Frame, HistoryFrame, OutputFrame

_MOST_UNREAD = 4 * 1024 * 1024
_ACKNOWLEDGE = 64 * 1024  # bytes drawn between two acknowledgements


class MissingOutput(Exception):
    """Bytes are missing: this connection cannot be trusted to bring the rest."""


class ReceivedFrames:
    """Frames of one terminal between its socket and its reader."""

    def __init__(self, after: int | None, may_skip: bool) -> None:
        self.position = after  # the next byte we have not received; None: a history tells
        self._may_skip = may_skip
        self._drawn = self._acknowledged = after or 0
        self._frames: asyncio.Queue[Frame | None] = asyncio.Queue()
        self._unread = 0
        self._room = asyncio.Event()

    def admit(self, frame: Frame) -> Frame | None:
        """What is new in a frame, if anything."""
        if isinstance(frame, HistoryFrame):
            self.position = frame.offset
            return frame
        if not isinstance(frame, OutputFrame):
            return frame
        position = frame.offset if self.position is None else self.position
        if frame.offset > position:
            raise MissingOutput
        if frame.end <= position:
            return None
        self.position = frame.end
        return OutputFrame(position, frame.data[position - frame.offset :])

    async def put(self, frame: Frame | None) -> None:
        """None is the end. Waits while the reader is far behind."""
        self._frames.put_nowait(frame)
        self._unread += _size(frame)
        while self._unread > _MOST_UNREAD:
            self._room.clear()
            await self._room.wait()

    async def get(self) -> Frame | None:
        frame = await self._frames.get()
        self._unread -= _size(frame)
        self._room.set()
        if frame is None:
            self._frames.put_nowait(None)  # the end stays the end for whoever asks next
        return frame

    def drawn(self, frame: Frame) -> bool:
        """The reader is done with a frame; whether the server should hear how far it is.

        A reader who says so is taken for a screen: far behind, it gets the screen instead of the bytes.
        """
        if isinstance(frame, HistoryFrame):
            self._drawn = self._acknowledged = frame.offset
        elif isinstance(frame, OutputFrame):
            self._drawn = frame.end
        return self._is_due()

    def acknowledgement(self) -> int | None:
        """The offset to tell the server, when there is something to tell."""
        if not self._is_due():
            return None
        self._acknowledged = self._drawn
        return self._drawn

    def _is_due(self) -> bool:
        return self._may_skip and self._drawn - self._acknowledged >= _ACKNOWLEDGE


def _size(frame: Frame | None) -> int:
    return len(frame.data) if isinstance(frame, OutputFrame | HistoryFrame) else 0
