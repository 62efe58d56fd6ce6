"""Clients without a credential: some send headers without end, the others only hold a connection.

    python hostile_clients.py PORT ENDLESS IDLE

A client whose connection is closed opens another one. Prints a line when all of them are connected.
"""

import asyncio
import resource
import sys
from contextlib import suppress

BLOCK = b"y" * (64 << 10)
REOPEN_SECONDS = 0.05


class Clients:
    def __init__(self, port: int, expected: int) -> None:
        self._port = port
        self._missing = expected

    async def send_headers(self) -> None:
        """Send a header field that never ends, on one connection after the other."""
        while True:
            _, writer = await self._connect()
            try:
                writer.write(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nx: ".encode())
                while True:
                    writer.write(BLOCK)
                    await writer.drain()
            except ConnectionError:
                writer.close()

    async def idle(self) -> None:
        while True:
            reader, writer = await self._connect()
            with suppress(ConnectionError):
                await reader.read()
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while True:
            try:
                streams = await asyncio.open_connection("127.0.0.1", self._port)
            except OSError:
                await asyncio.sleep(REOPEN_SECONDS)
                continue
            self._missing -= 1
            if self._missing == 0:
                print("connected", flush=True)
            return streams


async def main(port: int, endless: int, idle: int) -> None:
    clients = Clients(port, endless + idle)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(endless):
            tasks.create_task(clients.send_headers())
        for _ in range(idle):
            tasks.create_task(clients.idle())


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main(*map(int, sys.argv[1:])))
