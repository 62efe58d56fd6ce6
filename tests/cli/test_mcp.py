"""`bullpen mcp`, used as agents use it: through the protocol's own Python client."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import TextContent

from support.commands import Bullpen
from support.repositories import Repo
from support.server import Server
from support.session_client import SessionClient, define_scripted
from web.people import environment_of, new_token

COMMAND = str(Path(sys.executable).parent / "bullpen")


class Agent:
    """An agent that has Bullpen's tools."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def tools(self) -> set[str]:
        return {tool.name for tool in (await self.session.list_tools()).tools}

    async def call(self, name: str, /, **arguments: Any) -> Any:
        """What a tool returns; what went wrong as text."""
        result = await self.session.call_tool(name, arguments)
        [content] = result.content
        assert isinstance(content, TextContent)
        return content.text if result.is_error else json.loads(content.text)


@asynccontextmanager
async def agent(env: dict[str, str]) -> AsyncIterator[Agent]:
    started = StdioServerParameters(command=COMMAND, args=["mcp"], env=env)
    async with stdio_client(started) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield Agent(session)


async def delegate(server: Server) -> dict[str, str]:
    token = await new_token(server, "delegate")
    return {"BULLPEN_URL": server.url, "BULLPEN_TOKEN": token["token"], "HOME": str(server.home)}


def key_of(pid: int) -> dict[str, str]:
    given = environment_of(pid)
    return {name: value for name, value in given.items() if name.startswith("BULLPEN_ACTIVITY")}


async def test_an_agent_starts_prompts_waits_for_and_reads_a_session(server: Server) -> None:
    await define_scripted(server)
    other = await SessionClient.begin(server, title="somebody else's")
    async with agent(await delegate(server)) as helper:
        assert await helper.tools() == {
            "list_sessions",
            "list_agents",
            "start_session",
            "prompt_session",
            "wait_for_session",
            "read_session",
        }
        assert await helper.call("list_sessions") == []
        assert "scripted" in [each["id"] for each in await helper.call("list_agents")]
        started = await helper.call(
            "start_session",
            agent="scripted",
            directory=str(server.workspace),
            prompt="[[chunk 'forty-two']]",
            title="sub-task",
        )
        done = await helper.call("wait_for_session", session=started["id"])
        assert (done["outcome"], done["last"][0]["text"]) == ("done", "forty-two")
        await helper.call("prompt_session", session=started["id"], prompt="[[chunk 'and more']]")
        assert (await helper.call("wait_for_session", session=started["id"]))["outcome"] == "done"
        read = await helper.call("read_session", session=started["id"])
        assert [m["text"] for m in read["messages"] if m["role"] == "agent"] == ["forty-two", "and more"]
        assert read["earlier"] is False
        last = await helper.call("read_session", session=started["id"], messages=1)
        assert ([m["text"] for m in last["messages"]], last["earlier"]) == (["and more"], True)
        assert [each["title"] for each in await helper.call("list_sessions")] == ["sub-task"]
        assert "only the sessions it started" in await helper.call("read_session", session=other.id)
        assert "only the sessions it started" in await helper.call(
            "prompt_session", session=other.id, prompt="hello"
        )


async def test_a_command_that_failed_does_not_end_the_wait_for_its_session(server: Server) -> None:
    await define_scripted(server)
    async with agent(await delegate(server)) as helper:
        order = {"agent": "scripted", "directory": str(server.workspace)}
        prompt = "[[terminal 'exit 4' release=false]] [[sleep 0.5]] [[chunk mended]]"
        started = await helper.call("start_session", **order, prompt=prompt)
        done = await helper.call("wait_for_session", session=started["id"])
        assert (done["outcome"], done["last"][0]["text"].endswith("mended")) == ("done", True)


async def test_what_an_agent_says_in_many_pieces_is_read_as_one(server: Server) -> None:
    await define_scripted(server)
    async with agent(await delegate(server)) as helper:
        started = await helper.call(
            "start_session",
            agent="scripted",
            directory=str(server.workspace),
            prompt="[[stream n=8 delay=0.1]]",
            title="talker",
        )
        done = await helper.call("wait_for_session", session=started["id"])
        whole = "".join(f"<{n}>" for n in range(8))
        assert [said["text"] for said in done["last"]] == [whole]
        read = await helper.call("read_session", session=started["id"], messages=2)
        assert [(said["role"], said["text"]) for said in read["messages"]] == [
            ("user", "[[stream n=8 delay=0.1]]"),
            ("agent", whole),
        ]
        rows = await server.call("GET", f"/api/sessions/{started['id']}/messages")
        assert len(rows["messages"]) > 4, "it did come in pieces"


async def test_a_delegate_that_knows_no_repository_works_in_the_one_of_its_directory(server: Server) -> None:
    await define_scripted(server)
    site = Repo(server.workspace / "site").path
    repository = await server.call("POST", "/api/repositories", 201, json={"path": str(site)})
    async with agent(await delegate(server)) as helper:
        started = await helper.call(
            "start_session", agent="scripted", directory=str(site), prompt="[[chunk x]]"
        )
    session = await server.call("GET", f"/api/sessions/{started['id']}")
    assert (session["repoId"], session["locationPath"]) == (repository["id"], str(site))


async def test_a_session_that_needs_a_person_is_told_so_and_not_answered(server: Server) -> None:
    await define_scripted(server)
    async with agent(await delegate(server)) as helper:
        started = await helper.call(
            "start_session", agent="scripted", directory=str(server.workspace), prompt="[[permission]]"
        )
        asked = await helper.call("wait_for_session", session=started["id"])
        assert asked["outcome"] == "needs a person"
        assert (await helper.call("wait_for_session", session=started["id"], seconds=0))["status"] == "active"


async def test_an_agent_asks_its_human_with_the_key_of_its_own_run(server: Server, bullpen: Bullpen) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server, title="work")
    [worker] = (await server.call("GET", f"{talk.path}/workers"))["workers"]
    async with agent(key_of(worker["pid"]) | {"HOME": str(server.home)}) as helper:
        assert await helper.tools() == {"ask_human"}
        waiting = await helper.call("ask_human", question="Which port?", options=["80", "81"], seconds=0)
        assert waiting["status"] == "no answer yet"
        [item] = json.loads((await bullpen("inbox", "--json")).out)["items"]
        assert (item["kind"], item["sessionId"]) == ("question", talk.id)
        answering = asyncio.create_task(helper.call("ask_human", ticket=waiting["ticket"]))
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
        assert "needs a question" in await helper.call("ask_human")


async def test_a_question_outlives_the_server(server: Server) -> None:
    await define_scripted(server)
    talk = await SessionClient.begin(server)
    [worker] = (await server.call("GET", f"{talk.path}/workers"))["workers"]
    async with agent(key_of(worker["pid"]) | {"HOME": str(server.home)}) as helper:
        waiting = await helper.call("ask_human", question="Go on?", seconds=0)
        await server.kill()
        await server.start()
        [question] = (await server.call("GET", f"{talk.path}/questions"))["questions"]
        path = f"{talk.path}/questions/{question['id']}"
        await server.call("POST", path, 204, json={"action": "decline"})
        answer = await helper.call("ask_human", ticket=waiting["ticket"])
        assert answer == {"status": "declined", "answer": None}


async def test_what_makes_no_sense_is_refused_with_a_sentence(server: Server) -> None:
    async with agent(await delegate(server)) as helper:
        for arguments, reason in (
            ({}, "read_session needs session"),
            ({"session": 3}, "session must be of type string"),
            ({"session": "x", "page": 1}, "takes session, messages, not page"),
        ):
            assert reason in await refusal(helper, "read_session", arguments)
        assert "the tools are" in await refusal(helper, "approve", {})
        assert "no session" in await helper.call("read_session", session="nobody")


async def refusal(helper: Agent, name: str, arguments: dict[str, Any]) -> str:
    try:
        await helper.session.call_tool(name, arguments)
    except MCPError as error:
        return error.error.message
    raise AssertionError(f"{name} took {arguments}")


async def test_without_a_key_it_says_where_to_get_one(lonely_bullpen: Bullpen) -> None:
    ran = await lonely_bullpen("mcp")
    assert ran.code != 0
    assert "bullpen token add" in ran.err


async def test_the_help_says_who_can_ask_a_person(lonely_bullpen: Bullpen) -> None:
    said = " ".join((await lonely_bullpen("mcp", "--help")).out.split())
    assert "An agent that runs elsewhere has no ask_human." in said
