"""The current and the previous major version of the MCP SDK use every tool of `bullpen mcp`."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bullpen.wire import mcp
from support.server import Server
from support.session_client import SessionClient, define_scripted
from web.clients import environment_of, new_token

DRIVER = Path(__file__).parents[1] / "support" / "mcp_driver.py"
BULLPEN = Path(sys.executable).parent / "bullpen"
PREVIOUS = Path(sys.prefix) / "mcp-previous" / "bin" / "python"
TOOLS = {
    "ask_human",
    "list_agents",
    "list_sessions",
    "prompt_session",
    "read_session",
    "run_command",
    "start_session",
    "wait_for_session",
}


class Steps:
    """Reads the steps that a driver reports, in order."""

    def __init__(self, output: asyncio.StreamReader) -> None:
        self._output = output

    async def read(self, step: str) -> dict[str, Any]:
        async with asyncio.timeout(60):
            line = await self._output.readline()
        assert line, f"the driver ended before it had {step}"
        report: dict[str, Any] = json.loads(line)
        assert report.pop("step") == step, report
        return report


@asynccontextmanager
async def run_driver(
    python: Path, server: Server, key: dict[str, str], traffic: Path
) -> AsyncIterator[Steps]:
    """Run a driver with its own token and the activity key of an agent's run."""
    assert python.exists(), "install the previous version with: make .venv/mcp-previous/.packages"
    token = await new_token(server, "delegate")
    env = {"BULLPEN_URL": server.url, "BULLPEN_TOKEN": token["token"], "HOME": str(server.home), **key}
    order = {
        "bullpen": str(BULLPEN),
        "env": env,
        "workspace": str(server.workspace),
        "traffic": str(traffic),
    }
    process = await asyncio.create_subprocess_exec(
        python, DRIVER, json.dumps(order), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield Steps(process.stdout)
        async with asyncio.timeout(60):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize(
    ("python", "major"), [(Path(sys.executable), "2"), (PREVIOUS, "1")], ids=["current", "previous"]
)
async def test_the_sdk_uses_every_tool(server: Server, tmp_path: Path, python: Path, major: str) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server)
    run = environment_of((await talk.worker())["pid"])
    key = {name: run[name] for name in ("BULLPEN_ACTIVITY_URL", "BULLPEN_ACTIVITY_TOKEN")}
    async with run_driver(python, server, key, tmp_path) as steps:
        connected = await steps.read("connected")
        assert (connected["name"], connected["protocol"]) == ("bullpen", mcp.NEWEST_VERSION)
        assert connected["sdk"].partition(".")[0] == major
        assert set(connected["tools"]) == TOOLS

        used = await steps.read("used")
        assert "scripted" in [agent["id"] for agent in used["agents"]]
        assert (used["done"]["outcome"], used["done"]["last"][0]["text"]) == ("done", "forty-two")
        texts = [message["text"] for message in used["read"]["messages"] if message["role"] == "agent"]
        assert texts == ["forty-two", "more"]
        assert [session["title"] for session in used["listed"]] == ["sub-task"]

        failed = await steps.read("failed")
        assert failed["tool"][0] == -32602
        assert "the tools are" in failed["tool"][1]
        assert failed["argument"] == "read_session needs session"
        assert "no session" in failed["session"]

        question = (await talk.wait_for_event("question"))["data"]
        assert question["message"] == "Which port?"
        answer = {"action": "accept", "content": {"answer": "81"}}
        await server.call("POST", f"{talk.path}/questions/{question['id']}", 204, json=answer)
        assert (await steps.read("answered"))["answer"] == {"status": "accepted", "answer": "81"}

        cancelled = await steps.read("cancelled")
        await server.call("POST", f"/api/sessions/{cancelled['session']}/cancel", 204)
        await steps.read("ended")
    assert unanswered(tmp_path) == [cancelled["id"]]


def unanswered(traffic: Path) -> list[Any]:
    """Return the ids of the requests without an answer; check that no request was answered twice."""
    received, sent = (
        [json.loads(line) for line in (traffic / name).read_text().splitlines()] for name in ("in", "out")
    )
    asked = [message["id"] for message in received if "method" in message and "id" in message]
    for message in sent:
        asked.remove(message["id"])
    return asked
