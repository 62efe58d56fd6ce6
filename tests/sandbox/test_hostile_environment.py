"""Variables that an agent chooses for a terminal act on its program, and not on what starts the sandbox."""

import json
import shlex

from support.server import Server
from support.session_client import SessionClient, define_scripted


async def test_variables_of_the_loader_have_no_effect_outside_of_the_sandbox(server: Server) -> None:
    """With LD_PRELOAD the loader would run code; LD_DEBUG_OUTPUT lets it write a file."""
    outside = server.home.parent / "outside"
    outside.mkdir()
    await define_scripted(server, state=[])
    client = await SessionClient.begin(server)
    env = [
        {"name": "LD_DEBUG", "value": "files"},
        {"name": "LD_DEBUG_OUTPUT", "value": str(outside / "written")},
        {"name": "MINE", "value": "hello"},
    ]
    params = {"command": "sh", "args": ["-c", 'test "$LD_DEBUG" = files && test "$MINE" = hello'], "env": env}
    await client.run_turn(f"[[ask method=terminal/create {shlex.quote('params=' + json.dumps(params))}]]")
    exited = await client.wait_for_event("worker_exited")
    assert exited["data"]["exitCode"] == 0
    assert list(outside.iterdir()) == []
