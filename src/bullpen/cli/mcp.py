"""`bullpen mcp`: serve the Model Context Protocol on stdin and stdout, so that an agent can use Bullpen."""

import asyncio

import click

from .mcp_stdio import serve
from .mcp_tools import McpTools


@click.command()
def mcp() -> None:
    """Let an agent list, start, prompt, wait for and read sessions.

    Add this command to the agent's configuration as an MCP server. BULLPEN_TOKEN decides what the agent may
    do: create a token for it. An agent that runs in Bullpen can also ask you a question (ask_human), even
    without a token: its process has a credential for questions only. An agent that runs elsewhere has no
    ask_human.

    \b
    Examples:
      bullpen token add helper --scope delegate
      claude mcp add bullpen -e BULLPEN_TOKEN=… -- bullpen mcp
    """
    asyncio.run(_serve())


async def _serve() -> None:
    """Serve the tools that the environment allows."""
    async with McpTools.open() as tools:
        await serve(tools)
