"""`bullpen mcp`: lets an agent use Bullpen, as a server of the Model Context Protocol on stdin and stdout."""

import asyncio

from .mcp_stdio import serve
from .mcp_tools import McpTools
from .verb import new_app

app = new_app()


@app.command()
def mcp() -> None:
    """Let an agent list, start, prompt, wait for and read sessions.

    An agent's configuration names it as an MCP server. What it may do is decided by BULLPEN_TOKEN: give it
    one of its own. An agent that runs in Bullpen can also ask you a question (ask_human), with a token or
    without: it has the key of its own run, which is good for that and for nothing else. An agent that runs
    elsewhere has no ask_human.

    \b
    Examples:
      bullpen token add helper --scope delegate
      claude mcp add bullpen -e BULLPEN_TOKEN=… -- bullpen mcp
    """
    asyncio.run(_serve())


async def _serve() -> None:
    async with McpTools.open() as tools:
        await serve(tools)
