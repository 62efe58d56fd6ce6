"""An ACP agent that is written with the official Python package.

It stores the prompts of each session in a file of its working directory, so that another process can load
the session. A prompt is one word with an argument: see `OfficialAgent.prompt`.
"""

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any, cast

import acp
from acp import schema
from acp.interfaces import Agent, Client

OPTIONS = [
    schema.PermissionOption(option_id="allow", name="Allow", kind="allow_once"),
    schema.PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
]


class OfficialAgent:
    def __init__(self) -> None:
        self._client: Client
        self._directory = Path()
        self._cancelled = asyncio.Event()

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        return schema.InitializeResponse(
            protocol_version=protocol_version,
            agent_capabilities=schema.AgentCapabilities(load_session=True),
            agent_info=schema.Implementation(name="official", version="1"),
        )

    async def new_session(self, cwd: str, **_: Any) -> schema.NewSessionResponse:
        self._directory = Path(cwd)
        return schema.NewSessionResponse(session_id=uuid.uuid4().hex)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> schema.LoadSessionResponse:
        self._directory = Path(cwd)
        for text in self._texts(session_id):
            await self._client.session_update(session_id, acp.update_user_message_text(text))
            await self._say(session_id, "an answer")
        return schema.LoadSessionResponse()

    async def prompt(
        self, session_id: str, prompt: list[schema.TextContentBlock], **_: Any
    ) -> schema.PromptResponse:
        """Run the command of the prompt: `say <text>`, `edit <file>`, `ask`, `wait` (for cancel), `count`."""
        self._cancelled.clear()
        texts = [*self._texts(session_id), prompt[0].text]
        self._file(session_id).write_text(json.dumps(texts))
        word, *arguments = prompt[0].text.split(" ", 1)
        argument = "".join(arguments)
        match word:
            case "say":
                await self._say(session_id, argument)
            case "edit":
                await self._edit(session_id, argument)
            case "ask":
                return await self._ask(session_id)
            case "wait":
                await self._say(session_id, "waiting")
                await self._cancelled.wait()
                return schema.PromptResponse(stop_reason="cancelled")
            case "count":
                await self._say(session_id, f"this is prompt {len(texts)}")
        return schema.PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        self._cancelled.set()

    async def _edit(self, session_id: str, name: str) -> None:
        """Report a tool call that uses a file and a terminal of the client."""
        path = str(self._directory / name)
        call = acp.start_edit_tool_call("edit-1", f"Edit {name}", path, "new\n")
        await self._client.session_update(session_id, call)
        await self._client.write_text_file(session_id, path, "new\n")
        read = await self._client.read_text_file(session_id, path)
        terminal = await self._client.create_terminal(session_id, "/bin/cat", [path])
        exited = await self._client.wait_for_terminal_exit(session_id, terminal.terminal_id)
        shown = await self._client.terminal_output(session_id, terminal.terminal_id)
        await self._client.release_terminal(session_id, terminal.terminal_id)
        done = acp.update_tool_call("edit-1", status="completed")
        await self._client.session_update(session_id, done)
        await self._say(session_id, f"{read.content!r} {exited.exit_code} {shown.output!r}")

    async def _ask(self, session_id: str) -> schema.PromptResponse:
        call = schema.ToolCallUpdate(tool_call_id="ask-1", title="Do it", kind="execute", status="pending")
        answer = await self._client.request_permission(session_id, call, OPTIONS)
        if isinstance(answer.outcome, schema.DeniedOutcome):
            return schema.PromptResponse(stop_reason="cancelled")
        await self._say(session_id, f"you chose {answer.outcome.option_id}")
        return schema.PromptResponse(stop_reason="end_turn")

    async def _say(self, session_id: str, text: str) -> None:
        await self._client.session_update(session_id, acp.update_agent_message_text(text))

    def _texts(self, session_id: str) -> list[str]:
        """Return the prompts of the session."""
        file = self._file(session_id)
        texts: list[str] = json.loads(file.read_text()) if file.exists() else []
        return texts

    def _file(self, session_id: str) -> Path:
        return self._directory / f"{session_id}.json"


if __name__ == "__main__":
    asyncio.run(acp.run_agent(cast(Agent, OfficialAgent())))
