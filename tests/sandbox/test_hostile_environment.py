"""What an agent chooses or writes has no effect on the programs that the server runs outside the sandbox."""

import asyncio
import json
import os
import shlex

import psutil

from support.repositories import Repo
from support.server import SECONDS, Server
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


async def test_the_server_runs_no_program_from_a_directory_that_an_agent_can_write(server: Server) -> None:
    """A user may have started the server with the PATH of a virtual environment in a workspace."""
    repository = Repo(server.workspace / "site")
    canary, programs = server.home.parent / "canary", repository.path / ".venv/bin"
    programs.mkdir(parents=True)
    for name in ("bwrap", "env", "git", "setpriv"):
        (programs / name).write_text(f'#!/bin/sh\ntouch {canary}\nexec /usr/bin/{name} "$@"\n')
        (programs / name).chmod(0o755)
    server.set(PATH=f"{programs}::{os.environ['PATH']}")
    await server.restart()
    await define_scripted(server)
    client = await SessionClient.begin(server, locationPath=str(repository.path))
    assert (await server.call("GET", "/api/sandbox"))["mechanism"] == "bubblewrap"
    await client.run_turn("[[terminal 'command -v git']]")
    assert f"said '{programs}/git" in await client.agent_text()  # agents have the PATH of the user
    await server.call("GET", f"{client.path}/diff", 200)
    assert not canary.exists()


async def test_a_program_that_hides_its_mark_ends_with_its_worker(server: Server) -> None:
    """It leaves the process group and removes the variable by which the server finds it."""
    await define_scripted(server)
    client = await SessionClient.begin(server)
    seconds = f"{os.getpid()}{server.port}"
    hidden = f"env -i setsid -f sleep {seconds} </dev/null >/dev/null 2>&1"
    params = json.dumps({"command": "sh", "args": ["-c", f"{hidden}; sleep 1000"]})
    await client.run_turn(f"[[ask method=terminal/create {shlex.quote(f'params={params}')}]]")
    async with asyncio.timeout(SECONDS):
        while not sleeping(seconds):
            await asyncio.sleep(0.02)
    await server.call("POST", f"{client.path}/complete", 200)
    async with asyncio.timeout(SECONDS):
        while sleeping(seconds):
            await asyncio.sleep(0.02)


def sleeping(seconds: str) -> list[int]:
    """Return the pids of the programs `sleep` with this argument."""
    found = psutil.process_iter(["cmdline"])
    return [each.pid for each in found if each.info["cmdline"] == ["sleep", seconds]]
