"""`bullpen mcp`, used through the official Python client of the protocol, as agents use it."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import TextContent

from support.commands import Bullpen
from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient, define_scripted
from web.clients import environment_of, new_token

COMMAND = str(Path(sys.executable).parent / "bullpen")


class McpClient:
    """An MCP client that calls the tools of `bullpen mcp`."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def tools(self) -> set[str]:
        return {tool.name for tool in (await self.session.list_tools()).tools}

    async def call(self, name: str, /, **arguments: Any) -> Any:
        """Call a tool. Return its result, or the text of its error."""
        result = await self.session.call_tool(name, arguments)
        [content] = result.content
        assert isinstance(content, TextContent)
        return content.text if result.is_error else json.loads(content.text)


@asynccontextmanager
async def mcp_client(env: dict[str, str]) -> AsyncIterator[McpClient]:
    parameters = StdioServerParameters(command=COMMAND, args=["mcp"], env=env)
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield McpClient(session)


async def delegate(server: Server) -> dict[str, str]:
    token = await new_token(server, "delegate")
    return {"BULLPEN_URL": server.url, "BULLPEN_TOKEN": token["token"], "HOME": str(server.home)}


def activity_variables(pid: int) -> dict[str, str]:
    variables = environment_of(pid)
    return {name: value for name, value in variables.items() if name.startswith("BULLPEN_ACTIVITY")}


async def test_an_agent_starts_prompts_waits_for_and_reads_a_session(server: Server) -> None:
    await define_scripted(server)
    other = await SessionClient.begin(server, title="not started by the client")
    async with mcp_client(await delegate(server)) as client:
        assert await client.tools() == {
            "list_sessions",
            "list_agents",
            "start_session",
            "prompt_session",
            "wait_for_session",
            "read_session",
            "run_command",
        }
        assert await client.call("list_sessions") == []
        assert "scripted" in [each["id"] for each in await client.call("list_agents")]
        started = await client.call(
            "start_session",
            agent="scripted",
            directory=str(server.workspace),
            prompt="[[chunk 'forty-two']]",
            title="sub-task",
        )
        done = await client.call("wait_for_session", session=started["id"])
        assert (done["outcome"], done["last"][0]["text"]) == ("done", "forty-two")
        await client.call("prompt_session", session=started["id"], prompt="[[chunk 'and more']]")
        assert (await client.call("wait_for_session", session=started["id"]))["outcome"] == "done"
        read = await client.call("read_session", session=started["id"])
        assert [m["text"] for m in read["messages"] if m["role"] == "agent"] == ["forty-two", "and more"]
        assert read["earlier"] is False
        last = await client.call("read_session", session=started["id"], messages=1)
        assert ([m["text"] for m in last["messages"]], last["earlier"]) == (["and more"], True)
        assert [each["title"] for each in await client.call("list_sessions")] == ["sub-task"]
        assert "only the sessions it started" in await client.call("read_session", session=other.id)
        assert "only the sessions it started" in await client.call(
            "prompt_session", session=other.id, prompt="hello"
        )


async def test_a_command_that_failed_does_not_end_the_wait_for_its_session(server: Server) -> None:
    await define_scripted(server)
    async with mcp_client(await delegate(server)) as client:
        order = {"agent": "scripted", "directory": str(server.workspace)}
        prompt = "[[terminal 'exit 4' release=false]] [[sleep 0.5]] [[chunk mended]]"
        started = await client.call("start_session", **order, prompt=prompt)
        done = await client.call("wait_for_session", session=started["id"])
        assert (done["outcome"], done["last"][0]["text"].endswith("mended")) == ("done", True)


async def test_a_message_that_arrives_in_many_pieces_is_read_as_one(server: Server) -> None:
    await define_scripted(server)
    async with mcp_client(await delegate(server)) as client:
        started = await client.call(
            "start_session",
            agent="scripted",
            directory=str(server.workspace),
            prompt="[[stream n=8 delay=0.1]]",
            title="talker",
        )
        done = await client.call("wait_for_session", session=started["id"])
        whole = "".join(f"<{n}>" for n in range(8))
        assert [each["text"] for each in done["last"]] == [whole]
        read = await client.call("read_session", session=started["id"], messages=2)
        assert [(each["role"], each["text"]) for each in read["messages"]] == [
            ("user", "[[stream n=8 delay=0.1]]"),
            ("agent", whole),
        ]
        rows = await server.call("GET", f"/api/sessions/{started['id']}/messages")
        assert len(rows["messages"]) > 4, "the agent's text arrived in one piece"


async def test_a_session_of_a_delegate_belongs_to_the_repository_of_its_directory(server: Server) -> None:
    await define_scripted(server)
    site = Repo(server.workspace / "site").path
    repository = await server.call("POST", "/api/repositories", 201, json={"path": str(site)})
    async with mcp_client(await delegate(server)) as client:
        started = await client.call(
            "start_session", agent="scripted", directory=str(site), prompt="[[chunk x]]"
        )
    session = await server.call("GET", f"/api/sessions/{started['id']}")
    assert (session["repoId"], session["locationPath"]) == (repository["id"], str(site))


async def test_waiting_for_a_session_that_asks_returns_that_it_needs_a_person(server: Server) -> None:
    await define_scripted(server)
    async with mcp_client(await delegate(server)) as client:
        started = await client.call(
            "start_session", agent="scripted", directory=str(server.workspace), prompt="[[permission]]"
        )
        asked = await client.call("wait_for_session", session=started["id"])
        assert asked["outcome"] == "needs a person"
        assert (await client.call("wait_for_session", session=started["id"], seconds=0))["status"] == "active"


async def test_an_agent_asks_the_user_with_the_token_of_its_own_run(server: Server, bullpen: Bullpen) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server, title="work")
    [worker] = (await server.call("GET", f"{talk.path}/workers"))["workers"]
    async with mcp_client(activity_variables(worker["pid"]) | {"HOME": str(server.home)}) as client:
        assert await client.tools() == {"ask_human"}
        waiting = await client.call("ask_human", question="Which port?", options=["80", "81"], seconds=0)
        assert waiting["status"] == "no answer yet"
        [item] = json.loads((await bullpen("inbox", "--json")).out)["items"]
        assert (item["kind"], item["sessionId"]) == ("question", talk.id)
        answering = asyncio.create_task(client.call("ask_human", ticket=waiting["ticket"]))
        [question] = (await server.call("GET", f"{talk.path}/questions"))["questions"]
        assert (question["message"], question["form"]["properties"]["answer"]["enum"]) == (
            "Which port?",
            ["80", "81"],
        )
        await server.call(
            "POST",
            f"{talk.path}/questions/{question['id']}",
            204,
            json={"action": "accept", "content": {"answer": "81"}},
        )
        assert await answering == {"status": "accepted", "answer": "81"}
        assert json.loads((await bullpen("inbox", "--json")).out)["items"] == []
        assert "needs a question" in await client.call("ask_human")


async def test_a_question_outlives_the_server(server: Server) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server)
    [worker] = (await server.call("GET", f"{talk.path}/workers"))["workers"]
    async with mcp_client(activity_variables(worker["pid"]) | {"HOME": str(server.home)}) as client:
        waiting = await client.call("ask_human", question="Go on?", seconds=0)
        await server.kill()
        await server.start()
        [question] = (await server.call("GET", f"{talk.path}/questions"))["questions"]
        path = f"{talk.path}/questions/{question['id']}"
        await server.call("POST", path, 204, json={"action": "decline"})
        answer = await client.call("ask_human", ticket=waiting["ticket"])
        assert answer == {"status": "declined", "answer": None}


async def test_invalid_calls_are_refused_with_one_sentence(server: Server) -> None:
    async with mcp_client(await delegate(server)) as client:
        for arguments, reason in (
            ({}, "read_session needs session"),
            ({"session": 3}, "session must be of type string"),
            ({"session": "x", "page": 1}, "takes session, messages, not page"),
        ):
            failed = await client.session.call_tool("read_session", arguments)
            [content] = failed.content
            assert isinstance(content, TextContent)
            assert (failed.is_error, reason in content.text) == (True, True)
        with pytest.raises(MCPError, match="the tools are"):  # not for the model: it knows the tools
            await client.session.call_tool("approve", {})
        assert "no session" in await client.call("read_session", session="missing")


async def test_without_a_token_the_error_says_how_to_add_one(bullpen_without_server: Bullpen) -> None:
    ran = await bullpen_without_server("mcp")
    assert ran.code != 0
    assert "bullpen token add" in ran.err


async def test_the_help_says_that_only_agents_of_bullpen_can_ask_the_user(
    bullpen_without_server: Bullpen,
) -> None:
    text = " ".join((await bullpen_without_server("mcp", "--help")).out.split())
    assert "An agent that runs elsewhere has no ask_human." in text


async def test_a_client_with_more_than_a_delegate_token_runs_a_command(server: Server) -> None:
    session = await server.new_session()
    async with mcp_client(server.environment()) as client:
        done = await client.call(
            "run_command", session=session["id"], command=["sh", "-c", "echo hi; exit 4"]
        )
        assert (done["output"], done["exitCode"]) == ("hi\n", 4)
    await define_scripted(server)
    async with mcp_client(await delegate(server)) as client:
        order = {"agent": "scripted", "directory": str(server.workspace), "prompt": "hello"}
        own = await client.call("start_session", **order)
        assert "needs the scope operate" in await client.call(
            "run_command", session=own["id"], command=["true"]
        )
