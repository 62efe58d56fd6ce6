"""The `bullpen` command as a script runs it."""

import asyncio
import sys
from typing import NamedTuple


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


class Bullpen:
    """Runs commands in one environment."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env

    async def __call__(self, *arguments: str, stdin: bytes = b"") -> Done:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bullpen",
            *arguments,
            env=self.env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(120):
            out, err = await process.communicate(stdin)
        assert process.returncode is not None
        return Done(process.returncode, out.decode(), err.decode())
