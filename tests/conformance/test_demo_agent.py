"""A client of the official ACP package uses the demo agent, and all messages of the agent conform."""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import acp
import pytest
from acp import schema
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent
from acp.interfaces import Client

from conformance.official import TO_AGENT, TO_CLIENT, Side

COMMAND = str(Path(sys.executable).parent / "bullpen-demo-agent")
CAPABILITIES = schema.ClientCapabilities(
    fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True),
    elicitation=schema.ElicitationCapabilities(form=schema.ElicitationFormCapabilities()),
)


class OfficialClient:
    """Collects `updates` and answers permissions with `option`, or leaves them open if it is None."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.files: dict[str, str] = {}
        self.option: str | None = "once"
        self.traffic: list[StreamEvent] = []
        self._changed = asyncio.Condition()
        self._permissions = 0

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        await self._notify()

    async def request_permission(self, **_: Any) -> schema.RequestPermissionResponse:
        if self.option is None:
            self._permissions += 1
            await self._notify()
            await asyncio.Event().wait()
        chosen = schema.AllowedOutcome(outcome="selected", option_id=str(self.option))
        return schema.RequestPermissionResponse(outcome=chosen)

    async def read_text_file(self, path: str, **_: Any) -> schema.ReadTextFileResponse:
        if path not in self.files:
            raise acp.RequestError.resource_not_found(path)
        return schema.ReadTextFileResponse(content=self.files[path])

    async def write_text_file(self, path: str, content: str, **_: Any) -> None:
        self.files[path] = content

    async def create_elicitation(self, **_: Any) -> schema.AcceptElicitationResponse:
        return schema.AcceptElicitationResponse(action="accept", content={"name": "Ada"})

    def text(self, kind: str = "agent_message_chunk") -> str:
        chunks = [update for update in self.updates if update.session_update == kind]
        return "".join(chunk.content.text for chunk in chunks if chunk.content.type == "text")

    def statuses(self) -> list[str]:
        """Return the statuses of tool calls, in the order of their updates."""
        kinds = ("tool_call", "tool_call_update")
        return [update.status for update in self.updates if update.session_update in kinds]

    async def until_asked(self) -> None:
        await self._until(lambda: self._permissions)

    async def until_text(self, kind: str, text: str) -> None:
        await self._until(lambda: text in self.text(kind))

    async def _until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(condition)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


class Demo:
    """Starts the demo agent. Its state is stored beside the workspace and outlives the process."""

    def __init__(self, directory: Path) -> None:
        self.sent: Counter[str] = Counter()
        self.workspace = directory / "workspace"
        self.workspace.mkdir()
        self._env = {"DEMO_AGENT_STATE": str(directory / "state")}

    @asynccontextmanager
    async def start(self) -> AsyncIterator[tuple[OfficialClient, ClientSideConnection]]:
        """Start and initialize the agent. At the end, check all its messages and count them in `sent`."""
        client = OfficialClient()
        async with acp.spawn_agent_process(
            cast(Client, client),
            COMMAND,
            env=self._env,
            cwd=self.workspace,
            observers=[client.traffic.append],
            use_unstable_protocol=True,
        ) as (agent, _):
            await agent.initialize(acp.PROTOCOL_VERSION, CAPABILITIES)
            yield client, agent
        self.sent += _checked(client.traffic)


def _checked(traffic: list[StreamEvent]) -> Counter[str]:
    side = Side(sends=TO_CLIENT, answers=TO_AGENT)
    for event in traffic:
        if event.direction is StreamDirection.OUTGOING:
            side.note_request(event.message)
    for event in traffic:
        if event.direction is StreamDirection.INCOMING:
            side.check(event.message)
    return side.sent


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    return Demo(tmp_path)


async def test_a_client_of_the_official_package_drives_the_demo_agent(demo: Demo) -> None:
    async with demo.start() as (client, agent):
        session_id = (await agent.new_session(str(demo.workspace))).session_id

        async def prompt(text: str) -> str:
            answer = await agent.prompt(session_id, [acp.text_block(text)])
            return answer.stop_reason

        assert await prompt("good morning") == "end_turn"
        assert "You said: good morning" in client.text()
        await prompt("think, plan, image and question")
        assert client.text("agent_thought_chunk")
        assert "Hello Ada!" in client.text()

        await prompt("edit notes.md and run echo hello")
        assert client.files == {str(demo.workspace / "notes.md"): "The demo agent was here (1).\n"}
        assert client.statuses() == ["pending", "completed", "pending", "completed"]
        client.option = "no"
        await prompt("edit notes.md")
        assert client.statuses()[-1] == "failed"

        client.option = None
        turn = asyncio.create_task(prompt("ask"))
        await client.until_asked()
        await agent.cancel(session_id)
        assert await turn == "cancelled"
        turn = asyncio.create_task(prompt("slowly"))
        await client.until_text("agent_message_chunk", "I take my time")
        await agent.cancel(session_id)
        assert await turn == "cancelled"

        await agent.set_session_mode(session_id, "plan")
        await agent.set_config_option("pace", session_id, "slow")
        assert await prompt("refuse") == "refusal"
        for wrong in (prompt("fail"), agent.set_session_mode(session_id, "warp")):
            with pytest.raises(acp.RequestError):
                await wrong
        first_text = client.text()

    async with demo.start() as (client, agent):
        loaded = await agent.load_session(str(demo.workspace), session_id)
        assert loaded.modes is not None
        assert loaded.modes.current_mode_id == "plan"
        await client.until_text("user_message_chunk", "fail")
        assert "Hello Ada!" in client.text()
        assert first_text.startswith(client.text())
        await agent.resume_session(session_id, str(demo.workspace))
        await agent.close_session(session_id)
        with pytest.raises(acp.RequestError):
            await agent.load_session(str(demo.workspace), "nothing")
    assert {"session/request_permission", "fs/read_text_file", "fs/write_text_file"} <= set(demo.sent)
    assert {"elicitation/create", "session/update", "session/load: -32002"} <= set(demo.sent)
