"""Run the `bullpen` command as a script does, without a terminal."""

import asyncio
from tempfile import TemporaryFile
from typing import NamedTuple

from support.forks import start_bullpen


class CommandResult(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


class Bullpen:
    """Runs `bullpen` commands with the same environment variables."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env

    async def __call__(self, *arguments: str, stdin: bytes = b"") -> CommandResult:
        with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            process = start_bullpen(arguments, self.env, (given, out, err))
            try:
                async with asyncio.timeout(120):
                    while (code := process.poll()) is None:
                        await asyncio.sleep(0.005)
            finally:
                process.kill()
            out.seek(0)
            err.seek(0)
            return CommandResult(code, out.read().decode(), err.read().decode())
