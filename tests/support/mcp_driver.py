"""Drive `bullpen mcp` with the installed MCP SDK, of major version 1 or 2.

    python mcp_driver.py '{"bullpen": "bin/bullpen", "env": {…}, "workspace": "/…", "traffic": "/…"}'

It prints a line of JSON for each step of `main`. The lines to and from `bullpen mcp` are written to the files
`in` and `out` of the directory `traffic`.
"""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
import mcp
from mcp.client.stdio import stdio_client

SDK: Any = mcp  # without types: names differ between the major versions
ERROR = SDK.MCPError if hasattr(SDK, "MCPError") else SDK.McpError


class Driver:
    """Calls tools of `bullpen mcp`. `sdk` is a connected client of either major version."""

    def __init__(self, sdk: Any, traffic: Path) -> None:
        self._sdk = sdk
        self._traffic = traffic

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self._sdk.list_tools()).tools]

    async def call(self, name: str, /, **arguments: Any) -> Any:
        """Return the JSON result of a tool, or the text of its failure."""
        result = (await self._sdk.call_tool(name, arguments)).model_dump(mode="json", by_alias=True)
        [content] = result["content"]
        return content["text"] if result["isError"] else json.loads(content["text"])

    async def refusal(self, name: str, /, **arguments: Any) -> Any:
        """Return the code and the message of the error that refuses a call."""
        try:
            await self._sdk.call_tool(name, arguments)
        except ERROR as error:
            return [error.error.code, error.error.message]
        raise AssertionError(f"{name} accepted {arguments}")

    async def cancel(self, name: str, /, **arguments: Any) -> Any:
        """Begin a call and cancel it; return the id of its request."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._sdk.call_tool, name, arguments)
            id = await self._until_sent(name)
            if not hasattr(SDK, "MCPError"):  # version 1 does not send the notification itself
                params = SDK.types.CancelledNotificationParams(requestId=id)
                notification = SDK.types.CancelledNotification(params=params)
                await self._sdk.send_notification(SDK.types.ClientNotification(notification))
            tasks.cancel_scope.cancel()
        return id

    async def _until_sent(self, name: str) -> Any:
        """Wait until the last request is a call of this tool; return its id."""
        with anyio.fail_after(60):
            while True:
                whole_lines = (self._traffic / "in").read_text().rpartition("\n")[0]
                last = json.loads(whole_lines.splitlines()[-1])
                if last.get("params", {}).get("name") == name:
                    return last["id"]
                await anyio.sleep(0.01)


@asynccontextmanager
async def connected(settings: dict[str, Any]) -> AsyncIterator[tuple[dict[str, Any], Driver]]:
    """Connect; yield the protocol version and name that the server reported, and a driver."""
    traffic = Path(settings["traffic"])
    command = f"tee {traffic}/in | {settings['bullpen']} mcp | tee {traffic}/out"
    transport = stdio_client(
        mcp.StdioServerParameters(command="/bin/sh", args=["-c", command], env=settings["env"])
    )
    if hasattr(SDK, "Client"):  # version 2, which requests the newest protocol version first
        async with SDK.Client(transport) as client:
            about = {"protocol": client.protocol_version, "name": client.server_info.name}
            yield about, Driver(client, traffic)
    else:
        async with transport as streams, SDK.ClientSession(*streams) as session:
            result = await session.initialize()
            about = {"protocol": result.protocolVersion, "name": result.serverInfo.name}
            yield about, Driver(session, traffic)


async def main(settings: dict[str, Any]) -> None:
    async with connected(settings) as (about, driver):
        print_step("connected", **about, sdk=version("mcp"), tools=await driver.tools())
        agents = await driver.call("list_agents")
        task = {"agent": "scripted", "directory": settings["workspace"]}
        started = await driver.call("start_session", **task, prompt="[[chunk forty-two]]", title="sub-task")
        session = {"session": started["id"]}
        done = await driver.call("wait_for_session", **session)
        await driver.call("prompt_session", **session, prompt="[[chunk more]]")
        await driver.call("wait_for_session", **session)
        read = await driver.call("read_session", **session)
        listed = await driver.call("list_sessions")
        print_step("used", agents=agents, done=done, read=read, listed=listed)

        print_step(
            "failed",
            tool=await driver.refusal("approve"),
            argument=await driver.call("read_session"),
            session=await driver.call("read_session", session="nothing"),
        )
        print_step("answered", answer=await driver.call("ask_human", question="Which port?"))

        await driver.call("prompt_session", **session, prompt="[[wait_cancel]]")
        print_step("cancelled", id=await driver.cancel("wait_for_session", **session), session=started["id"])
        await driver.call("wait_for_session", **session)
        print_step("ended", listed=await driver.call("list_sessions"))


def print_step(step: str, **values: Any) -> None:
    sys.stdout.write(json.dumps({"step": step, **values}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    anyio.run(main, json.loads(sys.argv[1]))
