"""The examples of docs/client.md are run as they stand, at a real server."""

import asyncio
import sys
import textwrap
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

from docs.fences import tries
from support.server import Server

AROUND = """
import asyncio
from bullpen.client import Client, SessionChanged, SessionList, SessionRemoved

async def main():
{body}

asyncio.run(main())
"""


async def start(body: str, directory: Path, server: Server) -> asyncio.subprocess.Process:
    """A program of the example, which the page leaves without its frame."""
    program = directory / "example.py"
    program.write_text(AROUND.format(body=textwrap.indent(body, "    ")))
    return await asyncio.create_subprocess_exec(
        sys.executable, "-u", program, env=server.environment(), stdout=PIPE, stderr=PIPE
    )


@tries("docs/client.md", "from bullpen.client import Client")
async def test_a_program_prompts_and_follows_until_the_turn_ends(
    written: list[str], server: Server, tmp_path: Path
) -> None:
    body = written[0].replace("/home/me/site", str(server.workspace))
    program = await start(body, tmp_path, server)
    async with asyncio.timeout(60):
        out, err = await program.communicate()
    assert (program.returncode, err.decode()) == (0, "")
    types = [line.split()[1] for line in out.decode().splitlines()]
    assert (types[-1], types.count("turn_end")) == ("turn_end", 1)


async def until(last: bytes, stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Its lines up to one, or to its end."""
    async for line in stream:
        yield line
        if line == last:
            return


@tries("docs/client.md", "async for news in client.dashboard()")
async def test_a_program_is_told_of_every_session(written: list[str], server: Server, tmp_path: Path) -> None:
    told = written[0].replace("...  #", "print(type(news).__name__)  #")
    body = f"async with Client() as client:\n{textwrap.indent(told, '    ')}"
    program = await start(body, tmp_path, server)
    assert program.stdout
    try:
        async with asyncio.timeout(60):
            assert await program.stdout.readline() == b"SessionList\n"
            session = await server.new_session()
            assert await program.stdout.readline() == b"SessionChanged\n"
            await server.call("POST", f"/api/sessions/{session['id']}/complete")
            await server.call("DELETE", f"/api/sessions/{session['id']}?purge=true")
            assert b"SessionRemoved\n" in [line async for line in until(b"SessionRemoved\n", program.stdout)]
    finally:
        program.kill()
        await program.wait()
