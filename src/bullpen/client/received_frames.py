"""Queue the received frames of a terminal for their reader, without losing or repeating a byte."""

import asyncio

from .frames import Frame, HistoryFrame, OutputFrame

_MAX_UNREAD_BYTES = 4 * 1024 * 1024
_ACKNOWLEDGE_BYTES = 64 * 1024  # drawn between two acknowledgements


class MissingOutput(Exception):
    """Output is missing; a new connection must request it again."""


class ReceivedFrames:
    """A queue of terminal frames that knows which output was received and which was drawn."""

    def __init__(self, after: int | None, may_skip: bool) -> None:
        self.position = after  # offset of the next byte to receive; None: the first frame decides
        self._may_skip = may_skip
        self._drawn = self._acknowledged = after or 0
        self._frames: asyncio.Queue[Frame | None] = asyncio.Queue()
        self._unread = 0
        self._room = asyncio.Event()

    def remove_known(self, frame: Frame) -> Frame | None:
        """Return the part of a frame that was not received before; None if all of it was.

        Note the new position in the output. Raise MissingOutput if bytes before the frame are missing.
        """
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
        """Append a frame, None at the end. Wait while the reader is far behind."""
        self._frames.put_nowait(frame)
        self._unread += _size(frame)
        while self._unread > _MAX_UNREAD_BYTES:
            self._room.clear()
            await self._room.wait()

    async def get(self) -> Frame | None:
        """Return the next frame; None at the end, however often it is called then."""
        frame = await self._frames.get()
        self._unread -= _size(frame)
        self._room.set()
        if frame is None:
            self._frames.put_nowait(None)  # the next call returns None too
        return frame

    def mark_drawn(self, frame: Frame) -> bool:
        """Record that the reader is done with a frame. Return whether an acknowledgement is due.

        The server lets a reader that acknowledges skip output: far behind, it gets the current screen.
        """
        if isinstance(frame, HistoryFrame):
            self._drawn = self._acknowledged = frame.offset
        elif isinstance(frame, OutputFrame):
            self._drawn = frame.end
        return self._is_due()

    def take_acknowledgement(self) -> int | None:
        """Return the offset to acknowledge to the server, or None if no acknowledgement is due."""
        if not self._is_due():
            return None
        self._acknowledged = self._drawn
        return self._drawn

    def _is_due(self) -> bool:
        """Return whether enough was drawn since the last acknowledgement."""
        return self._may_skip and self._drawn - self._acknowledged >= _ACKNOWLEDGE_BYTES


def _size(frame: Frame | None) -> int:
    """Return the number of output bytes in a frame."""
    return len(frame.data) if isinstance(frame, OutputFrame | HistoryFrame) else 0
