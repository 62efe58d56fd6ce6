"""`bullpen mcp`: lets an agent use Bullpen, as a server of the Model Context Protocol on stdin and stdout."""

import asyncio

from .mcp_stdio import serve
from .mcp_tools import Tools
from .verb import new_app

app = new_app()


@app.command()
def mcp() -> None:
    """Let an agent list, start, prompt, wait for and read sessions, and ask you a question.

    An agent's configuration names it as an MCP server. What it may do is decided by BULLPEN_TOKEN: give it
    one of its own. Without a token an agent that runs in Bullpen has the key of its own run, which is good
    for asking you something and for nothing else.

    \b
    Examples:
      bullpen token add helper --scope delegate
      claude mcp add bullpen -e BULLPEN_TOKEN=… -- bullpen mcp
    """
    asyncio.run(_serve())


async def _serve() -> None:
    async with Tools.open() as tools:
        await serve(tools)
