"""`bullpen-demo-agent`: speak ACP on standard input and output until the input ends."""

import asyncio
import os
import sys
from pathlib import Path

from ... import __version__
from .acp_connection import AcpConnection
from .agent import DemoAgent
from .conversation_store import ConversationStore
from .requested_actions import HELP

NAME = "bullpen-demo-agent"


def main() -> int:
    """Serve ACP, or print the version or a help text; return the exit code, 2 for other arguments."""
    match sys.argv[1:]:
        case []:
            return asyncio.run(_serve())
        case ["--version"]:
            sys.stdout.write(f"{NAME} {__version__}\n")
            return 0
        case ["--help" | "-h"]:
            sys.stdout.write(f"{NAME} speaks the Agent Client Protocol on stdin and stdout.\n\n{HELP}\n")
            return 0
        case _:
            sys.stderr.write(f"{NAME} takes no arguments but --help and --version\n")
            return 2


async def _serve() -> int:
    """Serve the ACP client until stdin ends; return exit code 0."""
    connection = AcpConnection()
    await DemoAgent(connection, ConversationStore(_state_directory())).serve()
    return 0


def _state_directory() -> Path:
    """Return where conversations are stored: $DEMO_AGENT_STATE, else below the user's state directory."""
    if chosen := os.environ.get("DEMO_AGENT_STATE"):
        return Path(chosen)
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / NAME


if __name__ == "__main__":
    sys.exit(main())
