"""Ask the user for lines; a thread reads standard input, so that the event loop keeps handling signals."""

import asyncio
import os
import sys
import threading


class StdinLines:
    """The lines that the user types from now on."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), daemon=True).start()

    async def ask(self, prompt: str) -> str:
        """Print a prompt and return the next line, stripped; raise EOFError at the end of input."""
        print(prompt, end="", flush=True)
        line = await self._lines.get()
        if line is None:
            print()
            self._lines.put_nowait(None)  # the next call raises EOFError too
            raise EOFError
        return line.strip()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read standard input in the thread, and pass lines to the event loop."""
        rest = b""
        while data := os.read(sys.stdin.fileno(), 65536):
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                loop.call_soon_threadsafe(self._lines.put_nowait, line.decode(errors="replace"))
        if rest:
            loop.call_soon_threadsafe(self._lines.put_nowait, rest.decode(errors="replace"))
        loop.call_soon_threadsafe(self._lines.put_nowait, None)
