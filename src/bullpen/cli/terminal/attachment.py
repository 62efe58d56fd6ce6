"""A person at a worker's terminal: keys go there, output comes here, until one of the two leaves."""

import asyncio
from contextlib import suppress

from ...client import Disconnected, ErrorFrame, ExitFrame, Frame, HistoryFrame, OutputFrame, Reconnected
from ...client.tasks import background_task
from ...client.terminal import Terminal
from ...domain.errors import BullpenError, Forbidden
from .keys import DetachKeys
from .screen import LocalScreen
from .tty import Tty

_QUIET = 1.0  # seconds a connection may be lost before we speak of it
_LAST_KEYS = 1.0  # seconds that keys typed before detaching have to arrive
_HINT = " bullpen: Ctrl-] or ~. detaches, the program goes on "
_AWAY = " bullpen: the connection is lost, trying again · what you type is kept · Ctrl-] detaches "


class _Detached(Exception):
    """The person has left."""


class Attachment:
    """Joins a terminal of ours with one of the server's."""

    def __init__(self, tty: Tty, terminal: Terminal, read_only: bool) -> None:
        self._tty = tty
        self._terminal = terminal
        self._read_only = read_only
        self._screen = LocalScreen(tty)
        self._screen.set_hint(_HINT)
        self._typed: asyncio.Queue[bytes] = asyncio.Queue()
        self._lost = asyncio.Event()
        self._back = asyncio.Event()

    async def run(self) -> ExitFrame | None:
        """How the program ended; None when the person detached."""
        with self._tty.raw(), self._tty.listening(self._typed.put_nowait, self._resize):
            await self._screen.begin()
            self._resize()
            try:
                async with background_task(self._type()), background_task(self._warn()):
                    return await self._show()
            except _Detached:
                return None
            finally:
                await self._screen.restore()

    def _resize(self) -> None:
        if not self._read_only:
            self._terminal.resize(*self._tty.size())

    async def _type(self) -> None:
        keys = DetachKeys()
        while data := await self._typed.get():
            await self._screen.hide_hint()
            typed = keys.feed(data)
            if typed.data and not self._read_only:
                await self._terminal.write(typed.data)
            if typed.detach:
                break
        with suppress(TimeoutError, BullpenError):
            async with asyncio.timeout(_LAST_KEYS):
                await self._terminal.flush()
        raise _Detached

    async def _show(self) -> ExitFrame | None:
        async for frame in self._terminal:
            if isinstance(frame, ExitFrame):
                return frame
            await self._show_frame(frame)
        return None

    async def _show_frame(self, frame: Frame) -> None:
        match frame:
            case OutputFrame():
                await self._screen.draw(frame.data)
            case HistoryFrame():
                await self._screen.draw_history(frame)
            case Disconnected():
                self._back.clear()
                self._lost.set()
            case Reconnected():
                self._lost.clear()
                self._back.set()
            case ErrorFrame(error=Forbidden.code):
                self._read_only = True  # the token allows looking only

    async def _warn(self) -> None:
        """Says that the server is away, unless it is back in no time."""
        while True:
            await self._lost.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(_QUIET):
                    await self._back.wait()
            if await self._screen.show_notice(_AWAY, unless=self._back.is_set):
                self._terminal.redraw()
            await self._back.wait()
