"""One turn of the demo agent: what it says and does, told to the client as a real agent would."""

import asyncio
import os
import uuid
from typing import Any

from .acp_connection import AcpConnection
from .conversation_store import DemoConversation
from .requested_actions import RequestedAction
from .tool_runner import ToolRunner

PACES = {"fast": 0.005, "slow": 0.2}  # seconds a word
PICTURE = (  # four squares, PNG
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAIUlEQVR42mMQ0ajAijQWRGFFDKMaaKIBlwQug0Y1"
    "0EQDAKUZ6wF7FzrAAAAAAElFTkSuQmCC"
)
OPTIONS = [
    {"optionId": "once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 1},
        "colour": {"type": "string", "title": "A colour", "enum": ["red", "green", "blue"]},
        "sure": {"type": "boolean", "title": "Are you sure?", "default": True},
    },
    "required": ["name"],
}


class TurnStopped(Exception):
    """The turn ends with another stop reason than the usual one."""


class TurnFailed(Exception):
    """The turn ends with an error."""


class DemoTurn:
    """Says and does things for one prompt of one session."""

    def __init__(
        self, link: AcpConnection, session: DemoConversation, capabilities: dict[str, Any], hurry: bool
    ) -> None:
        self._link = link
        self._session = session
        self._capabilities = capabilities
        self._hands = ToolRunner(link, session, capabilities)
        self._pace = PACES[session.pace] if hurry else PACES["slow"]

    def update(self, update: dict[str, Any]) -> None:
        self._link.notify("session/update", {"sessionId": self._session.id, "update": update})

    async def say(self, text: str, kind: str = "agent_message_chunk") -> None:
        """Streams a text word by word."""
        message = uuid.uuid4().hex
        words = text.split(" ")
        for number, word in enumerate(words):
            piece = word if number == len(words) - 1 else f"{word} "
            content = {"type": "text", "text": piece}
            self.update({"sessionUpdate": kind, "messageId": message, "content": content})
            await asyncio.sleep(self._pace)
        self._remember({"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    async def grant(self, wish: RequestedAction) -> None:
        """Does one thing."""
        match wish.verb:
            case "think":
                await self.say("Let me think about that for a moment …", "agent_thought_chunk")
            case "plan":
                await self._plan()
            case "edit":
                await self._edit(wish.object)
            case "run":
                await self._run(wish.object)
            case "ask":
                await self._ask()
            case "question":
                await self._question()
            case "image":
                self._show_picture()
            case "long":
                await self.say(" ".join(f"word{number}" for number in range(1, 201)))
            case "fail":
                raise TurnFailed("you asked me to fail")
            case "refuse":
                raise TurnStopped("refusal")
            case "crash":
                os._exit(3)

    async def _plan(self) -> None:
        steps = ["Look around", "Do the work", "Look again"]
        for done in range(len(steps) + 1):
            self.update({"sessionUpdate": "plan", "entries": _entries(steps, done)})
            await asyncio.sleep(self._pace)
        self._remember({"sessionUpdate": "plan", "entries": _entries(steps, len(steps))})
        await self.say("The plan is done.")

    async def _edit(self, name: str) -> None:
        path = self._hands.find(name)
        if path is None:
            await self.say(f"`{name}` lies outside of my workspace; I leave it alone.")
            return
        old = await self._hands.read(path)
        new = f"{old}The demo agent was here ({old.count('demo agent') + 1}).\n"
        diff = {"type": "diff", "path": path, "oldText": old, "newText": new}
        call = self._begin(f"Edit {name}", "edit", content=[diff], locations=[{"path": path}])
        if await self._may(call):
            await self._hands.write(path, new)
            self._end(call, "completed", content=[diff])
            await self.say(f"I have added a line to `{name}`.")

    async def _run(self, command: str) -> None:
        call = self._begin(command, "execute", rawInput={"command": command})
        if not await self._may(call):
            return
        output, code = await self._hands.run(command, lambda terminal: self._show_terminal(call, terminal))
        content = [{"type": "content", "content": {"type": "text", "text": f"```\n{output}\n```"}}]
        self._end(call, "completed" if code == 0 else "failed", content=content)
        await self.say(f"`{command}` ended with exit code {code}.")

    async def _ask(self) -> None:
        call = self._begin("Do something that needs a permission", "other")
        if await self._may(call, always_ask=True):
            self._end(call, "completed")
            await self.say("Thank you. I did nothing with it.")

    async def _question(self) -> None:
        if "form" not in (self._capabilities.get("elicitation") or {}):
            await self.say("I would ask you something, but your client shows no forms.")
            return
        params = {"mode": "form", "message": "Tell me about yourself", "requestedSchema": FORM}
        answer = await self._link.call("elicitation/create", {"sessionId": self._session.id, **params})
        content = answer.get("content") if isinstance(answer, dict) else None
        if isinstance(content, dict):
            await self.say(f"Hello {content.get('name')}!")
        else:
            await self.say("All right, keep it to yourself.")

    def _show_picture(self) -> None:
        content = {"type": "image", "mimeType": "image/png", "data": PICTURE}
        self.update({"sessionUpdate": "agent_message_chunk", "content": content})

    def _show_terminal(self, call: dict[str, Any], terminal_id: str) -> None:
        content = [{"type": "terminal", "terminalId": terminal_id}]
        news = {"toolCallId": call["toolCallId"], "status": "in_progress", "content": content}
        self.update({"sessionUpdate": "tool_call_update", **news})

    def _begin(self, title: str, kind: str, **more: Any) -> dict[str, Any]:
        call = {"toolCallId": uuid.uuid4().hex, "title": title, "kind": kind, "status": "pending", **more}
        self.update({"sessionUpdate": "tool_call", **call})
        return call

    def _end(self, call: dict[str, Any], status: str, **more: Any) -> None:
        news = {"toolCallId": call["toolCallId"], "status": status, **more}
        self.update({"sessionUpdate": "tool_call_update", **news})
        self._remember({"sessionUpdate": "tool_call", **call, "status": status, **more})

    async def _may(self, call: dict[str, Any], always_ask: bool = False) -> bool:
        """Whether the call is allowed; asks unless somebody said always."""
        session = self._session
        if session.mode == "plan":
            self._end(call, "failed")
            await self.say("I am in plan mode, so I only say what I would do.")
            return False
        if not always_ask and (session.mode == "auto" or session.trusted):
            return True
        chosen = await self._link.call(
            "session/request_permission", {"sessionId": session.id, "toolCall": call, "options": OPTIONS}
        )
        match chosen:
            case {"outcome": {"outcome": "selected", "optionId": "once" | "always" as option}}:
                session.trusted = session.trusted or option == "always"
                return True
            case {"outcome": {"outcome": "selected"}}:
                self._end(call, "failed")
                await self.say("All right, I leave it.")
                return False
            case _:
                raise asyncio.CancelledError

    def _remember(self, update: dict[str, Any]) -> None:
        self._session.history.append(update)


def _entries(steps: list[str], done: int) -> list[dict[str, str]]:
    words = [
        "completed" if n < done else "in_progress" if n == done else "pending" for n in range(len(steps))
    ]
    return [
        {"content": step, "priority": "medium", "status": word}
        for step, word in zip(steps, words, strict=True)
    ]
