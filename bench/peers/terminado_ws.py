"""Peer: terminado on tornado, one shell per socket. Argument: port."""

import asyncio
import sys

from terminado import TermSocket, UniqueTermManager
from tornado.web import Application


async def serve(port: int) -> None:
    manager = UniqueTermManager(shell_command=["/bin/sh"])
    Application([("/", TermSocket, {"term_manager": manager})]).listen(port, "127.0.0.1")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
