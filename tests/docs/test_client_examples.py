"""The examples of docs/client.md run unchanged with a real server."""

import asyncio
import sys
import textwrap
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

from docs.page_examples import uses_examples
from support.server import Server

PROGRAM = """
import asyncio
from bullpen.client import Client, SessionChanged, SessionList, SessionRemoved

async def main():
{body}

asyncio.run(main())
"""


async def start(body: str, directory: Path, server: Server) -> asyncio.subprocess.Process:
    """Start a program with the example as the body of `main`, which the page leaves out."""
    program = directory / "example.py"
    program.write_text(PROGRAM.format(body=textwrap.indent(body, "    ")))
    return await asyncio.create_subprocess_exec(
        sys.executable, "-u", program, env=server.environment(), stdout=PIPE, stderr=PIPE
    )


@uses_examples("docs/client.md", "from bullpen.client import Client")
async def test_a_program_prompts_and_follows_until_the_turn_ends(
    shown_examples: list[str], server: Server, tmp_path: Path
) -> None:
    body = shown_examples[0].replace("/home/me/site", str(server.workspace))
    program = await start(body, tmp_path, server)
    async with asyncio.timeout(60):
        out, err = await program.communicate()
    assert (program.returncode, err.decode()) == (0, "")
    types = [line.split()[1] for line in out.decode().splitlines()]
    assert (types[-1], types.count("turn_end")) == ("turn_end", 1)


async def lines_until(last: bytes, stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a stream up to this line, or to its end."""
    async for line in stream:
        yield line
        if line == last:
            return


@uses_examples("docs/client.md", "async for news in client.dashboard()")
async def test_a_program_receives_every_change_of_the_session_list(
    shown_examples: list[str], server: Server, tmp_path: Path
) -> None:
    loop = shown_examples[0].replace("...  #", "print(type(news).__name__)  #")
    body = f"async with Client() as client:\n{textwrap.indent(loop, '    ')}"
    program = await start(body, tmp_path, server)
    assert program.stdout
    try:
        async with asyncio.timeout(60):
            assert await program.stdout.readline() == b"SessionList\n"
            session = await server.new_session()
            assert await program.stdout.readline() == b"SessionChanged\n"
            await server.call("POST", f"/api/sessions/{session['id']}/complete")
            await server.call("DELETE", f"/api/sessions/{session['id']}?purge=true")
            assert b"SessionRemoved\n" in [
                line async for line in lines_until(b"SessionRemoved\n", program.stdout)
            ]
    finally:
        program.kill()
        await program.wait()
