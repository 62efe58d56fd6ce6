"""Attach the user's terminal to a worker's: send keys and draw output until one of them ends."""

import asyncio
from contextlib import suppress

from ...client import Disconnected, ErrorFrame, ExitFrame, Frame, HistoryFrame, OutputFrame, Reconnected
from ...client.tasks import background_task
from ...client.terminal import Terminal
from ...domain.errors import BullpenError, Forbidden
from ...intervals import intervals
from .keys import DetachKeys
from .screen import LocalScreen
from .tty import Tty

_FLUSH_SECONDS = 1.0  # for keys typed before detaching to arrive
_HINT = " Ctrl-] or ~. detaches from bullpen, the program goes on "
_DISCONNECTED_NOTICE = (
    " bullpen: the connection is lost, trying again · what you type is kept · Ctrl-] detaches "
)


class _Detached(Exception):
    """The user has detached."""


class Attachment:
    """The connection between the user's terminal and a terminal of the server."""

    def __init__(self, tty: Tty, terminal: Terminal, read_only: bool) -> None:
        self._tty = tty
        self._terminal = terminal
        self._read_only = read_only
        self._screen = LocalScreen(tty)
        self._screen.set_hint(_HINT)
        self._typed: asyncio.Queue[bytes] = asyncio.Queue()
        self._disconnected = asyncio.Event()
        self._reconnected = asyncio.Event()

    async def run(self) -> ExitFrame | None:
        """Run until the end, and return how the program ended; None if the user detached."""
        with self._tty.raw(), self._tty.listening(self._typed.put_nowait, self._resize):
            await self._screen.begin()
            self._resize()
            try:
                async with background_task(self._send_keys()), background_task(self._watch_connection()):
                    return await self._draw_frames()
            except _Detached:
                return None
            finally:
                await self._screen.restore()

    def _resize(self) -> None:
        """Send the size of the user's terminal."""
        if not self._read_only:
            self._terminal.resize(*self._tty.size())

    async def _send_keys(self) -> None:
        """Send typed keys until the user detaches."""
        keys = DetachKeys()
        while data := await self._typed.get():
            await self._screen.hide_hint()
            typed = keys.feed(data)
            if typed.data and not self._read_only:
                await self._terminal.write(typed.data)
            if typed.detach:
                break
        with suppress(TimeoutError, BullpenError):
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self._terminal.flush()
        raise _Detached

    async def _draw_frames(self) -> ExitFrame | None:
        """Draw output until the program ends, and return its exit; None if no more frames come."""
        async for frame in self._terminal:
            if isinstance(frame, ExitFrame):
                return frame
            await self._handle(frame)
        return None

    async def _handle(self, frame: Frame) -> None:
        """Draw a frame, or note a change of the connection."""
        match frame:
            case OutputFrame():
                await self._screen.draw(frame.data)
            case HistoryFrame():
                await self._screen.draw_history(frame)
            case Disconnected():
                self._reconnected.clear()
                self._disconnected.set()
            case Reconnected():
                self._disconnected.clear()
                self._reconnected.set()
            case ErrorFrame(error=Forbidden.code):
                self._read_only = True  # the token does not allow to type

    async def _watch_connection(self) -> None:
        """Show a notice while the connection is lost, unless it is back after a short delay."""
        while True:
            await self._disconnected.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(intervals().outage_notice):
                    await self._reconnected.wait()
            if await self._screen.show_notice(_DISCONNECTED_NOTICE, unless=self._reconnected.is_set):
                self._terminal.redraw()
            await self._reconnected.wait()
